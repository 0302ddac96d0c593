// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// TestDaemon: what main.cc puts together, inside a test, in a folder of its
// own. Thread-safety: the test's main thread.
#ifndef HOLDFAST_SERVER_TRANSPORT_TEST_DAEMON_H_
#define HOLDFAST_SERVER_TRANSPORT_TEST_DAEMON_H_

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/device.h"
#include "proto/steady_time.h"
#include "server/exec/cpu_device.h"
#include "server/exec/ticker.h"
#include "server/exec/worker.h"
#include "server/log/log.h"
#include "server/session/session_registry.h"
#include "server/transport/grpc_server.h"
#include "server/transport/local_server.h"
#include "server/transport/shm_connection.h"
#include "server/waits/no_wait.h"

namespace holdfast {

class TestDaemon {
 public:
  explicit TestDaemon(ServerLimits limits = Limits(),
                      std::shared_ptr<Authenticator> trust = nullptr)
      : device_(NewCpuDevice(1)),
        worker_(WorkerOptions()),
        registry_(device_.get(), &worker_, limits, std::move(trust)) {
    // Of the daemon's own kind: it keeps no thread that must not wait.
    static const absl::Status log = SetUpLog({});
    if (!log.ok()) abort();
    char folder[] = "/tmp/holdfast_test_XXXXXX";
    if (mkdtemp(folder) == nullptr) abort();
    folder_ = folder;
    worker_.Start();
    ticker_.emplace(absl::Seconds(1),
                    [this] { registry_.ExpireSessions(SteadyNow()); });
  }
  ~TestDaemon() {
    ticker_.reset();
    registry_.Shutdown();
    if (grpc_ != nullptr) grpc_->Stop(absl::Milliseconds(100));
    if (local_ != nullptr) local_->Stop();
    worker_.Stop();
    rmdir(folder_.c_str());
  }

  static ServerLimits Limits() {
    ServerLimits limits;
    limits.inline_limit_bytes = kShmInlineLimit;
    return limits;
  }

  SessionRegistry* registry() { return &registry_; }
  const std::string& folder() const { return folder_; }
  std::string socket_path() const { return folder_ + "/d.sock"; }

  absl::Status StartLocal() {
    auto local = LocalServer::Start(&registry_, {socket_path()});
    if (local.ok()) local_ = *std::move(local);
    return local.status();
  }
  absl::Status StartGrpc(uint64_t max_strangers = 0) {
    auto grpc = GrpcServer::Start(
        &registry_, {"127.0.0.1:0", /*allow_remote=*/false, {}, max_strangers});
    if (grpc.ok()) grpc_ = *std::move(grpc);
    return grpc.status();
  }
  LocalServer* local() { return local_.get(); }
  GrpcServer* grpc() { return grpc_.get(); }

  int sessions() { return registry_.Stats().sessions_size(); }

 private:
  static Worker::Options WorkerOptions() {
    Worker::Options options;
    options.trap_calls = ChecksWaits();
    return options;
  }

  std::string folder_;
  std::unique_ptr<Device> device_;
  Worker worker_;
  SessionRegistry registry_;
  std::unique_ptr<LocalServer> local_;
  std::unique_ptr<GrpcServer> grpc_;
  std::optional<Ticker> ticker_;
};

// True as soon as `condition` is; false after `at_most`.
inline bool WaitFor(const std::function<bool()>& condition,
                    absl::Duration at_most = absl::Seconds(60)) {
  const SteadyTime end = SteadyNow() + at_most;
  while (!condition()) {
    if (SteadyNow() > end) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

inline int OpenDescriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_TEST_DAEMON_H_
