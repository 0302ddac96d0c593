// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// CloseLooks: how the worker wakes the watchdog where a session has its turn
// whose ops may take so little time that the watchdog's usual looks come too
// late. Costs whoever may take longer one load for each turn.
// Thread-safety: Ask on one thread, End and Sleep on another, Wake on any.
#ifndef HOLDFAST_SERVER_EXEC_CLOSE_LOOKS_H_
#define HOLDFAST_SERVER_EXEC_CLOSE_LOOKS_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "server/waits/ranked_mutex.h"

namespace holdfast {

class CloseLooks {
 public:
  // A turn has begun that wants a look so often.
  void Ask(absl::Duration every) {
    // Either this sees that looks have ended, or who ended them sees the turn.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const int64_t us = absl::ToInt64Microseconds(every);
    const int64_t now = every_us_.load(std::memory_order_relaxed);
    if (now != 0 && now <= us) return;
    every_us_.store(us, std::memory_order_relaxed);
    Wake();
  }
  // What was asked for; InfiniteDuration: nothing.
  absl::Duration every() const {
    const int64_t us = every_us_.load(std::memory_order_relaxed);
    return us == 0 ? absl::InfiniteDuration() : absl::Microseconds(us);
  }
  // Whoever still wants them asks again. A look comes after this.
  void End() {
    every_us_.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  void Wake() {
    {
      RankedLock lock(mutex_);
      woken_ = true;
    }
    changed_.notify_one();
  }
  // Until then, or until a Wake since the last sleep.
  void Sleep(absl::Duration at_most) {
    RankedLock lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoNanoseconds(at_most),
                      [this] { return woken_; });
    woken_ = false;
  }

 private:
  std::atomic<int64_t> every_us_{0};
  RankedMutex mutex_{LockRank::kWatch};
  RankedCondition changed_;
  bool woken_ = false;  // guarded by mutex_
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_CLOSE_LOOKS_H_
