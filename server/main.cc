// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// holdfastd: the daemon. Reads its flags, puts device, worker, sessions and
// transports together, and takes them apart when it is told to end.
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/device.h"
#include "proto/default_socket.h"
#include "proto/steady_time.h"
#include "proto/version.h"
#include "server/byte_size_flag.h"
#include "server/command_line.h"
#include "server/exec/device_library.h"
#include "server/exec/published_tensors.h"
#include "server/exec/ticker.h"
#include "server/exec/watchdog.h"
#include "server/exec/worker.h"
#include "server/flag_values.h"
#include "server/heap_return.h"
#include "server/http/http_server.h"
#include "server/log/json_string.h"
#include "server/log/log.h"
#include "server/process.h"
#include "server/replay/replaying_device.h"
#include "server/session/session_registry.h"
#include "server/state/durable_state.h"
#include "server/transport/grpc_server.h"
#include "server/transport/local_server.h"
#include "server/transport/named_door.h"
#include "server/transport/shm_connection.h"
#include "server/transport/tls_credentials.h"
#include "server/trust/authenticator.h"
#include "server/waits/no_wait.h"
#include "spdlog/spdlog.h"

ABSL_FLAG(std::string, socket, "",
          "path of the Unix socket for clients on this host (default: "
          "$HOLDFAST_SOCKET, else holdfast/holdfastd.sock in "
          "$XDG_RUNTIME_DIR, else /tmp/holdfast-<uid>/holdfastd.sock)");
ABSL_FLAG(std::string, listen, "",
          "host:port for clients over gRPC, such as 127.0.0.1:50151; port 0 "
          "takes a free one; empty: none");
ABSL_FLAG(bool, allow_remote, false,
          "let --listen and --http name addresses that other machines reach");
ABSL_FLAG(std::string, http, "",
          "host:port for /metrics (Prometheus), /healthz, /readyz and a web "
          "page of the daemon's sessions, such as 127.0.0.1:50152; port 0 "
          "takes a free one; empty: none");
ABSL_FLAG(bool, http_everything, false,
          "show all users' sessions to whoever reads --http; else sums, the "
          "reader's own sessions, and all of them to admins");
ABSL_FLAG(std::string, socket_mode, "0600",
          "mode of the Unix socket; 0666 lets every user of this machine in, "
          "each as themselves");
ABSL_FLAG(std::string, config, "",
          "configuration: what users may take (proto/config.proto); read again "
          "on SIGHUP");
ABSL_FLAG(
    bool, check_config, false,
    "look at --config, the token file, TLS files and addresses, say what is "
    "wrong with them, and end: status 0 if nothing is");
ABSL_FLAG(std::string, token_file, "",
          "tokens that clients over gRPC must show one of (holdfast token); "
          "read again when it changes");
ABSL_FLAG(std::string, tls_certificate, "",
          "certificate chain (PEM): gRPC runs over TLS; needs --tls_key");
ABSL_FLAG(std::string, tls_key, "", "its private key (PEM)");
ABSL_FLAG(std::string, tls_client_ca, "",
          "clients over gRPC may show a certificate that this authority (PEM) "
          "signed, its common name being the user; without --token_file they "
          "must");
ABSL_FLAG(bool, allow_anonymous, false,
          "with --allow_remote: let in whoever reaches the port");
ABSL_FLAG(bool, allow_plaintext_tokens, false,
          "take tokens from other machines without TLS");
ABSL_FLAG(
    std::string, device, "cpu",
    "what executes ops: cpu, cuda (the first GPU), cuda:N (the N-th, from "
    "0), several as cuda:0,1, or cuda:all; sessions see them as cuda:0, "
    "cuda:1 and so on");
ABSL_FLAG(std::string, device_library, "",
          "path of the device's library (default: libholdfast_<device>.so in "
          "$HOLDFAST_PLUGIN_PATH, beside this program or in ../lib)");
ABSL_FLAG(std::string, graphs, "on",
          "on: a GPU's recurring sequences of ops are recorded and launched as "
          "one (CUDA graphs); off: each op by itself");
ABSL_FLAG(std::string, fusion, "on",
          "on: in such recordings, elementwise ops that follow each other are "
          "one kernel; off: each has its own");
ABSL_FLAG(int, threads, 0,
          "threads of a kernel; 0: OMP_NUM_THREADS, else one per processor");
ABSL_FLAG(holdfast::ByteSize, memory_limit, {},
          "what one session's tensors may take, such as 8GiB or a number of "
          "bytes; 0: no limit");
ABSL_FLAG(uint64_t, max_sessions, 10000, "sessions at a time");
ABSL_FLAG(double, grace_max_seconds, 3600,
          "longest time that a session may outlive its connection by; "
          "detached sessions stay until somebody ends them");
ABSL_FLAG(
    std::string, state_dir, "",
    "folder for what is to survive the daemon: durable named tensors, and "
    "on SIGTERM sessions with a name; empty: nothing does");
ABSL_FLAG(bool, exit_with_parent, false,
          "end when the process that started the daemon ends");
ABSL_FLAG(
    std::string, named_socket, "",
    "with --exit_with_parent: path of a second Unix socket, which is there "
    "from the first session with a name on; from then on the daemon "
    "outlives its parent for as long as it has sessions");
ABSL_FLAG(double, exit_when_idle, 0,
          "end after so many seconds without a session and a published name; "
          "0: never");
ABSL_FLAG(std::string, log_level, "info",
          "least severe message to log: trace, debug, info, warning, error, "
          "critical, off");
ABSL_FLAG(std::string, log_format, "text",
          "text, for people, or json: an object per line");
ABSL_FLAG(std::string, log_file, "",
          "append the log here, not to stderr; opened anew on SIGHUP, after "
          "logrotate has moved it");
ABSL_FLAG(bool, print_address, false,
          "when ready, print one line of JSON on stdout: {\"socket\": PATH, "
          "\"listen\": HOST:PORT, \"http\": HOST:PORT}");

namespace holdfast {
namespace {

// Longest time from a signal to the end of the process.
constexpr int kLongestEndSeconds = 10;
// Longest time for what clients have sent, before sessions are saved.
constexpr absl::Duration kLongestDrain = absl::Seconds(30);
constexpr absl::Duration kStreamGrace = absl::Milliseconds(500);
// How often sessions are looked at whose time may be over.
constexpr absl::Duration kTickEvery = absl::Seconds(1);

std::string SocketPath() {
  const std::string path = absl::GetFlag(FLAGS_socket);
  return path.empty() ? DefaultSocketPath() : path;
}

// What the program made for its private daemon, which may outlive it: the
// folder of the socket, with the log.
void RemovePrivateFolder() {
  const std::string folder = SocketPath().substr(0, SocketPath().rfind('/'));
  if (!absl::GetFlag(FLAGS_exit_with_parent) ||
      !absl::StrContains(folder, "/holdfast-private-")) {
    return;
  }
  unlink((folder + "/log").c_str());
  rmdir(folder.c_str());
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "holdfastd: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

// Ends when they are on the disk, however long that takes: whoever has no time
// for it sends SIGKILL.
void SaveSessions(SessionRegistry* registry, Worker* worker,
                  DurableState* state) {
  // From now on the end of a session is not its user's doing.
  registry->set_archive(nullptr);
  std::vector<KeptTensors> all = registry->TakeKept(kLongestDrain);
  for (const KeptTensors& kept : all) {
    const absl::Status status = state->SaveSession(kept);
    if (status.ok()) {
      spdlog::info("state: session '{}' saved: {} tensors", kept.session,
                   kept.items.size());
    } else {
      spdlog::error("state: session '{}' is lost: {}", kept.session,
                    std::string(status.message()));
    }
  }
  worker->Run([&] { all.clear(); });
}

absl::Status OnOrOff(const char* flag, const std::string& value, bool* on) {
  if (value != "on" && value != "off") {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " must be on or off. Got '", value, "'."));
  }
  *on = value == "on";
  return absl::OkStatus();
}

// A test has no time to be five seconds late.
Watchdog::Options WatchdogOptions() {
  Watchdog::Options options;
  double seconds = 0;
  const char* const text = std::getenv("HOLDFAST_TEST_LATE_AFTER");
  if (text != nullptr && absl::SimpleAtod(text, &seconds) && seconds > 0) {
    options.late_after = absl::Seconds(seconds);
  }
  return options;
}

// The devices of the flags; at least one.
absl::StatusOr<std::vector<std::unique_ptr<Device>>> MakeDevices(
    int threads, EndOfService* end) {
  bool graphs = false;
  ReplayOptions replay;
  absl::Status s = OnOrOff("--graphs", absl::GetFlag(FLAGS_graphs), &graphs);
  if (s.ok()) {
    s = OnOrOff("--fusion", absl::GetFlag(FLAGS_fusion), &replay.fuse);
  }
  if (!s.ok()) return s;
  absl::StatusOr<std::vector<OpenedDevice>> opened = OpenDevices(
      absl::GetFlag(FLAGS_device), absl::GetFlag(FLAGS_device_library), threads,
      [end](const absl::Status& lost) { end->Restart(lost); });
  if (!opened.ok()) return opened.status();
  const Device& first = *opened->front().device;
  const std::vector<std::string> missing = first.missing_ops();
  if (!missing.empty()) {
    spdlog::warn("{} has no kernel for {} ops, which run on the host: {}",
                 std::string(first.name()), missing.size(),
                 absl::StrJoin(missing, ", "));
  }
  std::vector<std::unique_ptr<Device>> devices;
  for (auto& [device, recorder] : *opened) {
    if (graphs && recorder != nullptr) {
      device = std::make_unique<ReplayingDevice>(std::move(device), recorder,
                                                 replay);
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

// "cuda:0, NVIDIA H200, ...; cuda:1, ...".
std::string Describe(const std::vector<std::unique_ptr<Device>>& devices) {
  return absl::StrJoin(devices, "; ", [](std::string* text, const auto& one) {
    absl::StrAppend(text, one->description());
  });
}

// The device is lost with all that was on it. What is saved stays: it is not
// their users who end the sessions.
void EndSessions(SessionRegistry* registry, const absl::Status& lost) {
  spdlog::error("every session ends: {}", std::string(lost.message()));
  registry->set_archive(nullptr);
  for (const std::shared_ptr<Session>& session : registry->Sessions()) {
    registry->End(session, lost);
  }
}

// --exit_when_idle. `since`: when it was last in use.
void EndWhenIdle(SessionRegistry* registry, SteadyTime* since,
                 EndOfService* end) {
  const double seconds = absl::GetFlag(FLAGS_exit_when_idle);
  const SteadyTime now = SteadyNow();
  if (!registry->Sessions().empty() || registry->names()->Stats().names > 0) {
    *since = now;
  }
  if (seconds > 0 && now - *since > absl::Seconds(seconds)) {
    end->End(absl::StrCat("nobody has used it for ", seconds, " s"));
  }
}

// `again`: flags that a restart is to have beside the present ones, so that
// clients find it where they found this one.
absl::Status Serve(EndOfService* end, std::vector<std::string>* again) {
  int threads = absl::GetFlag(FLAGS_threads);
  if (threads == 0) threads = DefaultThreads();
  ServerLimits limits;
  limits.memory_limit_bytes = absl::GetFlag(FLAGS_memory_limit).bytes;
  limits.max_sessions = absl::GetFlag(FLAGS_max_sessions);
  limits.max_grace_seconds = absl::GetFlag(FLAGS_grace_max_seconds);
  // One limit for both transports: what fits into a ring.
  limits.inline_limit_bytes = kShmInlineLimit;

  absl::StatusOr<mode_t> socket_mode = SocketMode();
  if (!socket_mode.ok()) return socket_mode.status();
  absl::StatusOr<std::shared_ptr<Authenticator>> trust = MakeAuthenticator();
  if (!trust.ok()) return trust.status();

  absl::StatusOr<std::vector<std::unique_ptr<Device>>> made =
      MakeDevices(threads, end);
  if (!made.ok()) return made.status();
  const std::vector<std::unique_ptr<Device>> devices = *std::move(made);
  Device* const device = devices.front().get();
  std::unique_ptr<DurableState> state;
  if (!absl::GetFlag(FLAGS_state_dir).empty()) {
    absl::StatusOr<std::unique_ptr<DurableState>> found =
        DurableState::Open(absl::GetFlag(FLAGS_state_dir));
    if (!found.ok()) return found.status();
    state = *std::move(found);
  }
  Worker::Options worker_options;
  // Drivers of other devices make system calls of their own.
  worker_options.trap_calls =
      ChecksWaits() && absl::GetFlag(FLAGS_device) == "cpu";
  Worker worker(worker_options);
  SessionRegistry registry(device, &worker, limits, *trust);
  for (size_t i = 1; i < devices.size(); ++i) {
    registry.AddDevice(devices[i].get());
  }
  if (const std::string config = absl::GetFlag(FLAGS_config); !config.empty()) {
    absl::Status configured = registry.Configure(config);
    if (!configured.ok()) return configured;
  }
  worker.Start();
  std::optional<Watchdog> watchdog;
  watchdog.emplace(&worker, WatchdogOptions(), [&registry](const auto& turn) {
    return registry.LookAtTurn(turn);
  });
  std::optional<Ticker> ticker;
  ticker.emplace(kTickEvery, [&registry, end, since = SteadyNow()]() mutable {
    registry.ExpireSessions(SteadyNow());
    EndWhenIdle(&registry, &since, end);
  });

  if (state != nullptr) state->Start(device, &worker, &registry);

  absl::Status status;
  NamedDoor named_door(&registry, absl::GetFlag(FLAGS_named_socket));
  std::unique_ptr<GrpcServer> grpc;
  absl::StatusOr<std::unique_ptr<LocalServer>> local =
      LocalServer::Start(&registry, {SocketPath(), 10000, *socket_mode});
  if (!local.ok()) {
    status = local.status();
  } else if (!absl::GetFlag(FLAGS_listen).empty()) {
    absl::StatusOr<std::unique_ptr<GrpcServer>> started = GrpcServer::Start(
        &registry, {absl::GetFlag(FLAGS_listen),
                    absl::GetFlag(FLAGS_allow_remote), TlsFlags()});
    if (started.ok()) {
      grpc = *std::move(started);
    } else {
      status = started.status();
    }
  }
  std::unique_ptr<HttpServer> http;
  if (status.ok() && !absl::GetFlag(FLAGS_http).empty()) {
    absl::StatusOr<std::unique_ptr<HttpServer>> started = HttpServer::Start(
        &registry, &*watchdog,
        {absl::GetFlag(FLAGS_http), absl::GetFlag(FLAGS_allow_remote),
         absl::GetFlag(FLAGS_http_everything), TlsFlags()});
    if (started.ok()) {
      http = *std::move(started);
    } else {
      status = started.status();
    }
  }
  if (status.ok()) {
    const std::string page = http == nullptr ? "" : http->address();
    const std::string address = grpc == nullptr ? "" : grpc->address();
    spdlog::info("{} ready: device {}, socket {}, listen {}, http {}",
                 kServerName, Describe(devices), (*local)->path(),
                 address.empty() ? "none" : address,
                 page.empty() ? "none" : page);
    if (absl::GetFlag(FLAGS_print_address)) {
      std::printf("{\"socket\": %s, \"listen\": %s, \"http\": %s}\n",
                  JsonString((*local)->path()).c_str(),
                  JsonString(address).c_str(), JsonString(page).c_str());
      std::fflush(stdout);
    }
    // With nothing to read again, SIGHUP is a terminal that was closed, or a
    // parent; a service is only told to look.
    const HeapReturn heap_return;
    std::function<void()> reload;
    if (!absl::GetFlag(FLAGS_config).empty() ||
        !absl::GetFlag(FLAGS_token_file).empty() ||
        !absl::GetFlag(FLAGS_tls_certificate).empty() ||
        !absl::GetFlag(FLAGS_log_file).empty() ||
        (!absl::GetFlag(FLAGS_exit_with_parent) && isatty(STDERR_FILENO) == 0 &&
         isatty(STDIN_FILENO) == 0)) {
      reload = [&registry] {
        // First, so that the new file says what was read.
        const absl::Status log = ReopenLog();
        if (!log.ok()) spdlog::error("{}", std::string(log.message()));
        registry.Reload().IgnoreError();
        // gRPC looks after the files by itself, and says nothing.
        const absl::Status tls = CheckTls(TlsFlags());
        if (!tls.ok()) {
          spdlog::error("{} The former certificate stays.",
                        std::string(tls.message()));
        }
      };
    }
    spdlog::info("ending: {}", end->Wait(reload, [&] {
      return named_door.is_open() && !registry.Sessions().empty();
    }));
    // Saving takes as long as the disk does: nobody is to come meanwhile.
    registry.CloseDoor();
    if (end->lost().ok()) registry.HurryOps(/*saves=*/state != nullptr);
    *again = {"--print_address=false"};
    if (grpc != nullptr) again->push_back("--listen=" + grpc->address());
    if (http != nullptr) again->push_back("--http=" + http->address());
    if (!end->lost().ok()) EndSessions(&registry, end->lost());
    if (grpc != nullptr) grpc->StopServing();
    if (state != nullptr && end->lost().ok()) {
      SaveSessions(&registry, &worker, state.get());
    }
    ExitAtTheLatestIn(kLongestEndSeconds);
  }
  if (state != nullptr) state->Stop();
  // Sessions first, while their clients can still be told.
  registry.Shutdown();
  if (grpc != nullptr) grpc->Stop(kStreamGrace);
  if (local.ok()) (*local)->Stop();
  named_door.Close();
  if (http != nullptr) http->Stop();
  // Whoever came in between, now that nobody can any more.
  registry.Shutdown();
  ticker.reset();
  watchdog.reset();
  worker.Stop();
  if (status.ok()) spdlog::info("ended");
  return status;
}

int Main(int argc, char** argv) {
  if (AnswersQuestion(argc, argv)) return 0;
  const absl::Status flags = CheckFlagNames(argc, argv);
  if (!flags.ok()) return Fail(flags);
  absl::SetProgramUsageMessage("holdfastd: see --help.");
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        "arguments must be flags; see --help. Got '", rest[1], "'.")));
  }
  const absl::Status values = CheckFlagValues();
  if (!values.ok()) return Fail(values);
  if (absl::GetFlag(FLAGS_check_config)) return CheckConfiguration();
  RestartWithOpenMpSettings(argv);
  EndOfService end(absl::GetFlag(FLAGS_exit_with_parent));
  RaiseDescriptorLimit();
  absl::Status status =
      SetUpLog({absl::GetFlag(FLAGS_log_level), absl::GetFlag(FLAGS_log_format),
                absl::GetFlag(FLAGS_log_file)});
  std::vector<std::string> again;
  if (status.ok()) {
    status = Serve(&end, &again);
    FlushLog();
  }
  if (status.ok() && !end.lost().ok()) status = StartAgain(argv, again);
  if (status.ok()) RemovePrivateFolder();
  return status.ok() ? 0 : Fail(status);
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) { return holdfast::Main(argc, argv); }
