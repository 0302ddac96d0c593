// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// EnqueuedWork: how far a session's ops are ahead of its asynchronous devices,
// and how long these work for it. A GPU's queue has room for some thousand
// launches, and a launch that finds it full waits: in the worker, and so for
// every other session. A session that is too far ahead has no turns until its
// device has caught up; where others want the device, that is a matter of
// milliseconds, so that whose turn it is remains to be said here and not by the
// device, which serves all streams alike.
//
// Marks (timed points of the devices) stand between the ops. What lies between
// two has taken the time from one to the other, less that before the ops came.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_SERVER_EXEC_ENQUEUED_WORK_H_
#define HOLDFAST_SERVER_EXEC_ENQUEUED_WORK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "proto/steady_time.h"
#include "server/exec/device_time.h"
#include "server/exec/session_devices.h"

namespace holdfast {

class EnqueuedWork {
 public:
  // Ops between two marks, and those that may be ahead. An op is a handful of
  // launches at most, but for those that loop.
  static constexpr uint64_t kOpsPerMark = 64;
  static constexpr uint64_t kMostOps = 384;
  // Where others want the device: ops that may be ahead until it is known how
  // long they take, and device time between two marks, if an op is not longer.
  static constexpr uint64_t kFirstOps = 16;
  static constexpr double kSecondsPerMark = 0.0005;

  // `devices` must outlive this.
  explicit EnqueuedWork(SessionDevices* devices) : devices_(*devices) {}

  // Ops may run from now on; `ops` have so far, here and below.
  void BeginSlice(SteadyTime now, uint64_t ops) {
    if (ops == marked_ops_) begun_ = now;
  }
  // Whether no op should follow now. `lead`: the device time that ops may be
  // ahead, by what earlier ones took.
  bool TooFar(uint64_t ops, absl::Duration lead);
  // Sets a mark behind the ops, unless there is one.
  void Mark(uint64_t ops);
  // The devices have not done all that was marked.
  bool under_way() const { return !marks_.empty(); }
  // Since when they may have been at what is under way; nothing is: never.
  SteadyTime since() const;
  // When they worked at what they have done since the last call. Others' work
  // may have been done meanwhile.
  std::vector<DeviceUse> TakeUses();

 private:
  struct Marked {
    SessionDevices::Points points;
    uint64_t ops;
    SteadyTime begun, made;  // the first op since the mark before; the mark
  };
  bool Ahead(uint64_t ops, absl::Duration lead) const;
  bool MarkIsDue(uint64_t ops, absl::Duration lead) const;
  void DropPassed();
  // Notes the uses that ended with the mark, which has passed.
  void Account(const Marked& mark);

  SessionDevices& devices_;
  std::deque<Marked> marks_;
  uint64_t marked_ops_ = 0;  // before the last mark
  uint64_t passed_ops_ = 0;  // before the last that has passed
  SteadyTime begun_;
  std::map<Device*, SteadyTime> passed_at_;  // the last mark
  std::vector<DeviceUse> uses_;              // not taken yet
  double seconds_per_op_ = 0;                // of late; 0: not known
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_ENQUEUED_WORK_H_
