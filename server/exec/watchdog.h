// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Watchdog: the one thread that looks at the worker, which serves everybody,
// from outside. It tells of a turn that lasts, since the worker reads no clock
// for that; and when the worker makes no progress: that one kernel takes long,
// which still looks whether it is to stop and lets others be answered (busy),
// or that nothing does (stuck). It looks at counters that the worker keeps,
// asks kernels for a look once a turn lasts, and interrupts the worker only
// once it is late, for its stack. Thread-safety: health and the counts from any
// thread, the rest from one.
#ifndef HOLDFAST_SERVER_EXEC_WATCHDOG_H_
#define HOLDFAST_SERVER_EXEC_WATCHDOG_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/exec/worker.h"
#include "server/waits/ranked_mutex.h"

namespace holdfast {

class Watchdog {
 public:
  struct Options {
    // Without progress for that long the worker is late.
    absl::Duration late_after = absl::Seconds(5);
    // A kernel that does not look is legal for that long: libraries have some.
    absl::Duration deaf_at_most = absl::Minutes(1);
    // How exactly the time of a turn is kept, but where the worker asks for
    // close looks (CloseLooks).
    absl::Duration look_every = absl::Milliseconds(200);
    // Between lines about one and the same: twice as long each time.
    absl::Duration most_between_lines = absl::Minutes(10);
  };
  // `worker` is started, and must outlive the watchdog, which ends before the
  // worker stops. `lasts`: called by the watchdog's thread at each look at a
  // turn that was there at the look before, and at each close look. It returns
  // how long the next look may be away.
  using Lasts = std::function<absl::Duration(const Worker::Turn&)>;
  Watchdog(Worker* worker, Options options, Lasts lasts = nullptr);
  ~Watchdog();

  // Unavailable while the worker is stuck; OK with `*busy` set while one kernel
  // takes long.
  absl::Status health(std::string* busy) const;
  // Times that the worker was found stuck.
  uint64_t times_stuck() const { return times_stuck_.load(); }
  // Since its last progress, once it is late; else 0.
  double seconds_late() const { return seconds_late_.load(); }

 private:
  void Loop();
  // What the worker has done since the last look. `close`: also a turn that was
  // not there then. Returns how long the next look may be away.
  absl::Duration Look(absl::Duration since_last, bool close);
  void LookAtProgress(absl::Duration since_last);
  // `deaf`: it is in a kernel that does not look.
  void Tell(bool stuck, bool deaf);
  std::string Doing() const;

  Worker* const worker_;
  const Options options_;
  const Lasts lasts_;
  // The thread's own.
  uint64_t turns_ = 0;
  uint64_t looks_ = 0;
  uint64_t turn_ = 0;         // the number of the turn under way
  absl::Duration silent_;     // since the worker's last turn
  absl::Duration unlooked_;   // since that, or since a kernel's last look
  absl::Duration next_line_;  // when silent_ is so much
  bool was_stuck_ = false;

  std::atomic<uint64_t> times_stuck_{0};
  std::atomic<double> seconds_late_{0};
  std::atomic<bool> stop_{false};
  mutable RankedMutex mutex_{LockRank::kWatch};
  absl::Status health_;  // guarded by mutex_
  std::string busy_;     // likewise
  std::thread thread_;   // last: it uses all of the above
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_WATCHDOG_H_
