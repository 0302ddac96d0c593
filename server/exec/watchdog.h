// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Watchdog: a thread that tells when the worker, which serves everybody, makes
// no progress: that it waits for something it must not wait for (stuck), or
// that one kernel takes long (busy). It looks at counters that the worker keeps
// and interrupts it only once it is late, for its stack.
// Thread-safety: health and the counts from any thread, the rest from one.
#ifndef HOLDFAST_SERVER_EXEC_WATCHDOG_H_
#define HOLDFAST_SERVER_EXEC_WATCHDOG_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/exec/worker.h"

namespace holdfast {

class Watchdog {
 public:
  struct Options {
    // Without progress for that long the worker is late.
    absl::Duration late_after = absl::Seconds(5);
    // A kernel that computes all the while is legal for that long.
    absl::Duration busy_at_most = absl::Minutes(10);
    // Between lines about one and the same: twice as long each time.
    absl::Duration most_between_lines = absl::Minutes(10);
  };
  // `worker` is started, and must outlive the watchdog.
  Watchdog(const Worker* worker, Options options);
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
  // What the worker has done since the last look.
  void Look(absl::Duration since_last);
  void Tell(bool stuck);
  std::string Doing() const;
  // Processor time that the worker's thread has taken.
  absl::Duration WorkerTime() const;

  const Worker* const worker_;
  const Options options_;
  // The thread's own.
  uint64_t turns_ = 0;
  absl::Duration silent_;     // since the worker's last turn
  absl::Duration computing_;  // of that, on a processor
  absl::Duration worker_time_;
  absl::Duration next_line_;  // when silent_ is so much
  bool was_stuck_ = false;

  std::atomic<uint64_t> times_stuck_{0};
  std::atomic<double> seconds_late_{0};
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;  // guarded by mutex_, like what follows
  absl::Status health_;
  std::string busy_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_WATCHDOG_H_
