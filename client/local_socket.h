// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// LocalSocket: the control socket of a local session: one request, one reply,
// descriptors beside them. Frames are a 4-byte little-endian length and the
// message.
// Thread-safety: Call from any thread, one at a time inside; fd() is for poll.
#ifndef HOLDFAST_CLIENT_LOCAL_SOCKET_H_
#define HOLDFAST_CLIENT_LOCAL_SOCKET_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/holdfast.pb.h"
#include "proto/steady_time.h"

namespace holdfast::client {

namespace wire = ::holdfast::v1;

// Owns a descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

class LocalSocket {
 public:
  // NotFound: nothing listens at `path`.
  static absl::StatusOr<std::unique_ptr<LocalSocket>> Connect(
      const std::string& path);
  ~LocalSocket();

  int fd() const { return socket_.get(); }
  const std::string& path() const { return path_; }
  // Whether the process that listened has ended; false where that cannot be
  // known. After a hang-up; waits a moment.
  bool PeerEnded() const;
  // The user the daemon runs as.
  absl::StatusOr<uint32_t> PeerUser() const;

  // Sends a request and waits for its reply; `fds` receives the descriptors
  // that came with it. A reply with a status becomes that error; another error
  // means that the socket is unusable from now on.
  absl::StatusOr<wire::LocalReply> Call(const wire::LocalRequest& request,
                                        SteadyTime deadline,
                                        std::vector<Fd>* fds = nullptr);

 private:
  explicit LocalSocket(Fd socket, std::string path);
  absl::Status WriteAll(const std::string& bytes, SteadyTime deadline);
  absl::Status ReadAll(char* data, size_t size, SteadyTime deadline,
                       std::vector<Fd>* fds);
  // What a connection that broke means.
  absl::Status HungUp(const std::string& reason) const;
  absl::Status Await(short events, SteadyTime deadline);  // NOLINT: poll's type

  const Fd socket_;
  const std::string path_;
  Fd peer_;  // of its process
  std::mutex mutex_;
  bool broken_ = false;
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_LOCAL_SOCKET_H_
