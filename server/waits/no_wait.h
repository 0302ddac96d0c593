// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// NoWait: this thread serves everybody, and so must wait for nothing. What may
// wait (files, mappings, memory that the system clears) says so with MayWait;
// such a thread hands it to its Aside, whose threads may wait.
// Checked where ChecksWaits(): a thread that waits and must not is told with
// its stack (wait_reports.h). Thread-safety: scopes are their thread's own.
#ifndef HOLDFAST_SERVER_WAITS_NO_WAIT_H_
#define HOLDFAST_SERVER_WAITS_NO_WAIT_H_

#include <functional>

#include "server/waits/wait_reports.h"

namespace holdfast {

// Does for one thread what that must not do itself.
class Aside {
 public:
  virtual ~Aside() = default;
  // Returns when another thread has done it. The caller may serve others
  // meanwhile, so it holds no lock.
  virtual void Run(const std::function<void()>& call) = 0;
  // Another thread does it later, in the order of posts. Must not throw.
  virtual void Post(std::function<void()> call) = 0;
  // Returns when what was posted is done; the caller as in Run.
  virtual void Finish() = 0;
};

class NoWait {
 public:
  // `aside` must outlive the scope. Null: inside, the thread may wait after
  // all, as it must for a device whose driver wants its own thread.
  explicit NoWait(Aside* aside);
  ~NoWait();
  NoWait(const NoWait&) = delete;
  NoWait& operator=(const NoWait&) = delete;

  // This thread's; null where it may wait.
  static Aside* aside() { return aside_; }
  static bool active() { return aside_ != nullptr; }

 private:
  // Hidden: device plugins have a copy of their own.
  [[gnu::visibility("hidden")]] static inline thread_local Aside* aside_ =
      nullptr;
  Aside* const outer_;
};

namespace waits {
void CheckWait(const char* what);
}  // namespace waits

// What follows may take long: "fsync". Where waits are checked, this is not
// inside a NoWait, and the thread holds no lock that a NoWait may want
// (ranked_mutex.h).
inline void MayWait(const char* what) {
  if (ChecksWaits()) waits::CheckWait(what);
}

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_WAITS_NO_WAIT_H_
