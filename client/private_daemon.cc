// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/private_daemon.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/fork_guard.h"
#include "client/local_socket.h"
#include "proto/default_socket.h"
#include "proto/steady_time.h"

extern char** environ;

namespace holdfast::client {
namespace {

constexpr absl::Duration kStopTimeout = absl::Seconds(3);
// By then one that has no sessions has ended; other programs may have some.
constexpr absl::Duration kStayTimeout = absl::Milliseconds(500);

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsExecutable(const std::string& path) {
  struct stat info;
  return !path.empty() && stat(path.c_str(), &info) == 0 &&
         S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

// The folder of the library or program that holds this code.
std::string OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&OwnFolder), &info) == 0 ||
      info.dli_fname == nullptr) {
    return "";
  }
  char* resolved = realpath(info.dli_fname, nullptr);
  if (resolved == nullptr) return "";
  const std::string path = resolved;
  free(resolved);
  return path.substr(0, path.rfind('/'));
}

absl::Status Failure(absl::string_view what, int error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("[connect] a private daemon cannot be started: ", what, ": ",
                   strerror(error), "."));
}

}  // namespace

absl::StatusOr<std::string> FindDaemon(const std::string& daemon_path) {
  const std::string named = Environment("HOLDFAST_DAEMON");
  if (!named.empty()) {
    if (IsExecutable(named)) return named;
    return absl::NotFoundError(absl::StrCat(
        "[connect] HOLDFAST_DAEMON must name the daemon's binary. Got '", named,
        "', which is no executable file."));
  }
  std::vector<std::string> candidates = {daemon_path};
  const std::string own = OwnFolder();
  if (!own.empty()) {
    // The last: where the wheel holdfast-tensors-server puts it.
    for (const char* place :
         {"/holdfastd", "/bin/holdfastd", "/../bin/holdfastd", "/../holdfastd",
          "/../holdfast_server/bin/holdfastd"}) {
      candidates.push_back(own + place);
    }
  }
  for (absl::string_view folder : absl::StrSplit(Environment("PATH"), ':')) {
    if (!folder.empty())
      candidates.push_back(absl::StrCat(folder, "/holdfastd"));
  }
  for (const std::string& candidate : candidates) {
    if (IsExecutable(candidate)) return candidate;
  }
  return absl::NotFoundError(
      "[connect] no daemon runs on this machine, and none can be started: "
      "there is no holdfastd next to the library or on PATH. Install one (pip "
      "install holdfast_tensors_server-*.whl, the file that came with the "
      "client's, or Debian's package holdfast-server), name it in "
      "HOLDFAST_DAEMON, or connect to one elsewhere: connect(\"host:port\") or "
      "HOLDFAST_ADDRESS.");
}

absl::StatusOr<std::shared_ptr<PrivateDaemon>> PrivateDaemon::Get(
    const std::string& daemon_path, double timeout_seconds) {
  static std::mutex* const mutex = new std::mutex;
  static auto* const current = new std::weak_ptr<PrivateDaemon>;
  // For programs that end with sessions open.
  [[maybe_unused]] static const int at_exit = std::atexit([] {
    if (std::shared_ptr<PrivateDaemon> left = current->lock()) left->Stop();
  });
  static unsigned generation = ForkGeneration();
  std::lock_guard<std::mutex> lock(*mutex);
  std::shared_ptr<PrivateDaemon> daemon = current->lock();
  if (daemon && generation == ForkGeneration() && daemon->Running()) {
    return daemon;
  }
  absl::StatusOr<std::string> binary = FindDaemon(daemon_path);
  if (!binary.ok()) return binary.status();
  daemon.reset(new PrivateDaemon);
  absl::Status status = daemon->Start(*binary, timeout_seconds);
  if (!status.ok()) return status;
  *current = daemon;
  generation = ForkGeneration();
  return daemon;
}

absl::Status PrivateDaemon::Start(const std::string& binary,
                                  double timeout_seconds) {
  generation_ = ForkGeneration();
  // Short: a socket's path has 107 characters at most.
  std::string base = Environment("XDG_RUNTIME_DIR");
  if (base.empty() || base.size() > 60 || access(base.c_str(), W_OK) != 0) {
    base = "/tmp";
  }
  folder_ = absl::StrCat(base, "/holdfast-private-XXXXXX");
  if (mkdtemp(&folder_[0]) == nullptr) {
    folder_.clear();
    return Failure(absl::StrCat("making a folder in ", base), errno);
  }
  socket_ = folder_ + "/holdfastd.sock";
  const std::string log = folder_ + "/log";

  std::vector<std::string> arguments = {
      binary,
      absl::StrCat("--socket=", socket_),
      absl::StrCat("--named_socket=", DefaultSocketPath()),
      "--listen=",
      "--exit_with_parent",
      "--log_level=warning"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(&argument[0]);
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Ctrl-C in a terminal is the program's, not the daemon's; and the daemon
  // must not inherit what the program blocks or ignores.
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD, SIGUSR1}) {
    sigaddset(&defaults, signal);
  }
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  // A session of its own, so that it may outlive a terminal.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF |
                                            POSIX_SPAWN_SETSID);
  const int error = posix_spawn(&process_, binary.c_str(), &actions,
                                &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    process_ = -1;
    return Failure(absl::StrCat("running ", binary), error);
  }

  const SteadyTime deadline = SteadyNow() + absl::Seconds(timeout_seconds);
  while (true) {
    // The socket appears in one piece, so looking is cheap until it is there.
    if (access(socket_.c_str(), F_OK) == 0 &&
        LocalSocket::Connect(socket_).ok()) {
      return absl::OkStatus();
    }
    if (!Running()) {
      return absl::UnavailableError(
          absl::StrCat("[connect] the private daemon ", binary,
                       " must run. It ended at once", Log()));
    }
    if (SteadyNow() > deadline) {
      return absl::UnavailableError(absl::StrCat(
          "[connect] the private daemon ", binary, " must answer within ",
          timeout_seconds, " s. Got nothing", Log()));
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
}

std::string PrivateDaemon::Log() const {
  std::ifstream file(folder_ + "/log");
  std::stringstream text;
  text << file.rdbuf();
  std::string said = text.str();
  if (said.size() > 2000) said = "..." + said.substr(said.size() - 2000);
  return said.empty() ? "." : ", saying: " + said;
}

bool PrivateDaemon::Running() {
  if (process_ < 0) return false;
  const pid_t ended = waitpid(process_, nullptr, WNOHANG);
  // ECHILD: somebody else in the program waits for all children.
  const bool running =
      ended == 0 || (ended < 0 && errno == ECHILD && kill(process_, 0) == 0);
  if (!running) process_ = -1;
  return running;
}

PrivateDaemon::~PrivateDaemon() { Stop(); }

void PrivateDaemon::Stop() {
  if (generation_ != ForkGeneration()) return;
  if (process_ >= 0 && named_) {
    // Others may use it: it ends when nobody does, and tidies up itself.
    kill(process_, SIGUSR1);
    const SteadyTime deadline = SteadyNow() + kStayTimeout;
    while (!left_ && Running() && SteadyNow() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    process_ = -1;
    folder_.clear();
    return;
  }
  if (process_ >= 0) {
    kill(process_, SIGTERM);
    const SteadyTime deadline = SteadyNow() + kStopTimeout;
    while (Running() && SteadyNow() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    if (Running()) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
      process_ = -1;
    }
  }
  if (!folder_.empty()) {
    unlink(socket_.c_str());
    unlink((folder_ + "/log").c_str());
    rmdir(folder_.c_str());
    folder_.clear();
  }
}

}  // namespace holdfast::client
