// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the daemon's process needs of the operating system: settings that must
// stand before libraries load, signals, limits, and its parent's end.
// Thread-safety: the main thread, before others start, unless said otherwise.
#ifndef HOLDFAST_SERVER_PROCESS_H_
#define HOLDFAST_SERVER_PROCESS_H_

#include <functional>
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
  std::string Wait(const std::function<void()>& reload = nullptr);

  // From any thread, once: Wait returns, and the daemon is to start again,
  // since its device is lost.
  void Restart(const absl::Status& lost);
  // What Restart was told, once Wait has returned; OK if nothing.
  const absl::Status& lost() const { return lost_; }

 private:
  int signal_fd_ = -1;
  int parent_fd_ = -1;   // pidfd
  int restart_fd_ = -1;  // eventfd
  absl::Status lost_;
};

// Starts this program again in its own process, with `more` flags behind those
// of `argv`. Returns only if that fails.
absl::Status StartAgain(char** argv, const std::vector<std::string>& more);

// From any thread: ends the process after `seconds`, whatever still runs.
void ExitAtTheLatestIn(int seconds);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_PROCESS_H_
