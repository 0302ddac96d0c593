// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the daemon's process needs of the operating system: settings that must
// stand before libraries load, signals, limits, and its parent's end.
// Thread-safety: the main thread, before others start, unless said otherwise.
#ifndef HOLDFAST_SERVER_PROCESS_H_
#define HOLDFAST_SERVER_PROCESS_H_

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace holdfast {

// GNU OpenMP reads its settings when it is loaded, which is before main. Sets
// ours where the user has none and starts this program again, once.
void RestartWithOpenMpSettings(char** argv);

// Processors this process may use; OMP_NUM_THREADS where it is set.
int DefaultThreads();

// As many descriptors as the system allows: each local client takes a few.
void RaiseDescriptorLimit();

// Signals that end the daemon, and its parent's death. Make it before any
// other thread, so that all of them leave the signals to it.
class EndOfService {
 public:
  // `with_parent`: a private daemon. It ends when its parent does, and leaves
  // Ctrl-C, which a terminal sends to both, to the parent.
  explicit EndOfService(bool with_parent);
  ~EndOfService();

  // Returns why, for the log. With `reload`, SIGHUP calls that and ends
  // nothing.
  // A private daemon whose parent is gone, or says by SIGUSR1 that it needs it
  // no more, goes on while `stay` says so.
  std::string Wait(const std::function<void()>& reload = nullptr,
                   const std::function<bool()>& stay = nullptr);

  // From any thread: Wait returns, and the daemon is to start again, since its
  // device is lost. The first call counts, where several devices are.
  void Restart(const absl::Status& lost);
  // From any thread: Wait returns `why`, and the daemon ends in order. The
  // first call counts.
  void End(const std::string& why);
  // What Restart was told, once Wait has returned; OK if nothing.
  absl::Status lost() const;

 private:
  int signal_fd_ = -1;
  int parent_fd_ = -1;   // pidfd
  int restart_fd_ = -1;  // eventfd: Restart or End
  mutable std::mutex lost_mutex_;
  absl::Status lost_;  // these two guarded by lost_mutex_
  std::string why_;
};

// Starts this program again in its own process, with `more` flags behind those
// of `argv`. Returns only if that fails.
absl::Status StartAgain(char** argv, const std::vector<std::string>& more);

// From any thread: ends the process after `seconds`, whatever still runs.
void ExitAtTheLatestIn(int seconds);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_PROCESS_H_
