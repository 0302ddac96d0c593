// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/process.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

// How long a kernel's threads spin for the next kernel before they sleep.
// GNU OpenMP's default, 300000 rounds, is milliseconds: on a small machine
// they then keep the processor from the client that is to send the next op.
// Without any spinning each kernel pays wake-ups of some 50 microseconds.
// 10000 rounds are 100 to 200 microseconds: longer than the gaps between the
// kernels of a running program, and nothing for one that pauses.
constexpr char kSpinRounds[] = "10000";

int OpenPid(pid_t pid) {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
#else
  (void)pid;
  errno = ENOSYS;
  return -1;
#endif
}

}  // namespace

void RestartWithOpenMpSettings(char** argv) {
  // oneDNN would look for a profiler's library at its first kernel.
  setenv("ONEDNN_JIT_PROFILE", "0", 0);
  // The variable that we set is also the mark that we have been here.
  if (getenv("GOMP_SPINCOUNT") != nullptr ||
      getenv("OMP_WAIT_POLICY") != nullptr) {
    return;
  }
  setenv("GOMP_SPINCOUNT", kSpinRounds, 1);
  execv("/proc/self/exe", argv);
  // It works without, only slower.
}

int DefaultThreads() {
  int threads = 0;
  const char* asked = getenv("OMP_NUM_THREADS");
  if (asked != nullptr && absl::SimpleAtoi(asked, &threads) && threads > 0) {
    return threads;
  }
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return std::max(1u, std::thread::hardware_concurrency());
}

void RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

EndOfService::EndOfService(bool with_parent) {
  // A peer that is gone is an error of one write.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // so is a file that may not grow
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  if (with_parent) {
    signal(SIGINT, SIG_IGN);
    sigaddset(&set, SIGUSR1);
  } else {
    sigaddset(&set, SIGINT);
  }
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC);
  restart_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (with_parent) {
    // PR_SET_PDEATHSIG alone would end us with the *thread* that started us,
    // say one that a notebook used for a moment.
    parent_fd_ = OpenPid(getppid());
    if (parent_fd_ < 0) prctl(PR_SET_PDEATHSIG, SIGTERM);
  }
}

EndOfService::~EndOfService() {
  if (signal_fd_ >= 0) close(signal_fd_);
  if (parent_fd_ >= 0) close(parent_fd_);
  if (restart_fd_ >= 0) close(restart_fd_);
}

void EndOfService::Restart(const absl::Status& lost) {
  {
    std::lock_guard<std::mutex> lock(lost_mutex_);
    lost_.Update(lost);
  }
  const uint64_t one = 1;
  [[maybe_unused]] ssize_t n = write(restart_fd_, &one, sizeof(one));
}

void EndOfService::End(const std::string& why) {
  {
    std::lock_guard<std::mutex> lock(lost_mutex_);
    if (why_.empty()) why_ = why;
  }
  const uint64_t one = 1;
  [[maybe_unused]] ssize_t n = write(restart_fd_, &one, sizeof(one));
}

absl::Status EndOfService::lost() const {
  std::lock_guard<std::mutex> lock(lost_mutex_);
  return lost_;
}

std::string EndOfService::Wait(const std::function<void()>& reload,
                               const std::function<bool()>& stay) {
  // How soon a daemon that only stays for its sessions sees that none is left.
  constexpr int kLookAgainMs = 500;
  bool alone = false;
  while (true) {
    if (alone && (stay == nullptr || !stay())) {
      return "the parent process has ended";
    }
    // A negative descriptor is one that poll ignores.
    pollfd fds[3] = {{signal_fd_, POLLIN, 0},
                     {alone ? -1 : parent_fd_, POLLIN, 0},
                     {restart_fd_, POLLIN, 0}};
    while (poll(fds, 3, alone ? kLookAgainMs : -1) < 0) {
      if (errno != EINTR) return absl::StrCat("poll: ", strerror(errno));
    }
    if (fds[2].revents != 0) {
      std::lock_guard<std::mutex> lock(lost_mutex_);
      return why_.empty() ? "the device is lost" : why_;
    }
    if (fds[1].revents != 0) alone = true;
    if (fds[0].revents == 0) continue;
    signalfd_siginfo info = {};
    if (read(signal_fd_, &info, sizeof(info)) != sizeof(info)) {
      return "a signal";
    }
    if (info.ssi_signo == SIGUSR1) {
      alone = true;
      continue;
    }
    if (reload == nullptr || info.ssi_signo != SIGHUP) {
      return strsignal(static_cast<int>(info.ssi_signo));
    }
    reload();
  }
}

absl::Status StartAgain(char** argv, const std::vector<std::string>& more) {
  std::vector<char*> all;
  for (char** arg = argv; *arg != nullptr; ++arg) all.push_back(*arg);
  for (const std::string& flag : more) {
    all.push_back(const_cast<char*>(flag.c_str()));
  }
  all.push_back(nullptr);
  // EndOfService's signals stay blocked: one that comes meanwhile waits for the
  // next one's, which ends the daemon in order.
  execv("/proc/self/exe", all.data());
  return absl::InternalError(
      absl::StrCat("[process] starting again: ", strerror(errno)));
}

void ExitAtTheLatestIn(int seconds) {
  std::thread([seconds] {
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    constexpr char kLine[] = "holdfastd: a clean end took too long\n";
    [[maybe_unused]] ssize_t n = write(STDERR_FILENO, kLine, sizeof(kLine) - 1);
    _exit(1);
  }).detach();
}

}  // namespace holdfast
