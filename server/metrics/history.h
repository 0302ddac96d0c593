// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The last ten minutes of the daemon, a sample per second, for its web page.
// Thread-safety: all methods from any thread.
#ifndef HOLDFAST_SERVER_METRICS_HISTORY_H_
#define HOLDFAST_SERVER_METRICS_HISTORY_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "server/session/session_registry.h"

namespace holdfast {

class History {
 public:
  static constexpr size_t kSamples = 600;

  struct Sample {
    double uptime_seconds = 0;
    uint64_t bytes_in_use = 0;
    uint64_t bytes_cached = 0;
    uint64_t queued_bytes = 0;
    uint64_t sessions = 0;
    uint64_t waiting = 0;  // sessions, whose work has come and is not begun
    double ops_per_second = 0;
    double busy = 0;  // part of the time that the device worked, 0 to 1
  };

  // Samples from a thread of its own until destroyed. `registry` must outlive
  // this.
  explicit History(SessionRegistry* registry);
  ~History();

  std::vector<Sample> Samples() const;  // oldest first

 private:
  void Loop();
  void Take();

  SessionRegistry* const registry_;
  // Of the last sample; the thread's.
  uint64_t ops_ = 0;
  double device_seconds_ = 0;
  double uptime_seconds_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable stopping_;
  bool stop_ = false;
  std::deque<Sample> samples_;
  std::thread thread_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_METRICS_HISTORY_H_
