// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// RunAhead: how far a client is ahead of the daemon's device, and whether that
// is too far. Every so often, after as much work as takes an eighth of the
// bound, the client puts a progress read (a probe) into its stream. The answer
// says that all before it is done, and how long the device took; so the client
// learns what its estimates (op_cost.h) mean on this device. A client that is
// ahead by more than the bound waits for the next answer. It never waits while
// the device has no more than one such piece of work.
// Thread-safety: Add and Probe by one thread at a time (whoever holds the
// session's stream); all else from any thread.
#ifndef HOLDFAST_CLIENT_RUN_AHEAD_H_
#define HOLDFAST_CLIENT_RUN_AHEAD_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>

#include "absl/base/optimization.h"
#include "absl/base/thread_annotations.h"

namespace holdfast::client {

class RunAhead {
 public:
  // `too_far` is set and cleared; it must outlive this. `seconds`: of device
  // time; infinite: no bound.
  RunAhead(double seconds, std::atomic<bool>* too_far);

  // No probe is ever due: the daemon knows none.
  void Disable() { probe_at_ = UINT64_MAX; }

  // Counts a command of estimated `cost`. True: a probe is due.
  bool Add(uint64_t cost) {
    sent_ += cost;
    return ABSL_PREDICT_FALSE(sent_ >= probe_at_);
  }
  // The number of the probe to be sent now: 1, 2, 3, ...
  uint64_t Probe();
  // `device_seconds`: of the session, since its start.
  void Answered(uint64_t probe, double device_seconds);
  bool answered(uint64_t probe) const;
  // Seconds of work sent before the last probe and not known to be done.
  double Ahead() const;

 private:
  struct Sent {
    uint64_t probe;
    uint64_t cost;  // of all commands before it
  };

  double AheadLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Judge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const double bound_seconds_;
  std::atomic<bool>* const too_far_;
  uint64_t sent_ = 0;      // cost so far
  uint64_t probe_at_ = 0;  // of sent_
  mutable std::mutex mutex_;
  std::deque<Sent> probes_ ABSL_GUARDED_BY(mutex_);  // not answered
  uint64_t last_probe_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_answered_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;  // cost known to be done
  uint64_t probed_ ABSL_GUARDED_BY(mutex_) = 0;
  double device_seconds_ ABSL_GUARDED_BY(mutex_) = -1;  // as told last
  // Of answers that told too little time to go by.
  double new_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  double new_cost_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of those before, older ones counting less.
  double recent_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  double recent_cost_ ABSL_GUARDED_BY(mutex_) = 0;
  double seconds_per_cost_ ABSL_GUARDED_BY(mutex_) = 1e-9;
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_RUN_AHEAD_H_
