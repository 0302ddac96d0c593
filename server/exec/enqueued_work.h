// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// EnqueuedWork: how far a session's ops are ahead of an asynchronous device. A
// GPU's queue has room for some thousand launches, and a launch that finds it
// full waits: in the worker, and so for every other session. A session that is
// too far ahead has no turns until its device has caught up.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_SERVER_EXEC_ENQUEUED_WORK_H_
#define HOLDFAST_SERVER_EXEC_ENQUEUED_WORK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "server/exec/session_devices.h"

namespace holdfast {

class EnqueuedWork {
 public:
  // Ops between two points, and points that may be ahead. An op is a handful of
  // launches at most, but for those that loop.
  static constexpr uint64_t kOpsPerPoint = 64;
  static constexpr size_t kMostPoints = 6;

  // `ops`: run so far. `record()` gives points of what the devices have.
  template <typename Record>
  bool TooFar(uint64_t ops, Record record) {
    if (ops - noted_ >= kOpsPerPoint) {
      noted_ = ops;
      points_.push_back(record());
      DropPassed();
    } else if (points_.size() >= kMostPoints) {
      DropPassed();
    }
    return points_.size() >= kMostPoints;
  }

 private:
  static bool Passed(const SessionDevices::Points& points) {
    return std::all_of(points.begin(), points.end(), [](const auto& one) {
      return one.first->PointPassed(one.second);
    });
  }
  void DropPassed() {
    while (!points_.empty() && Passed(points_.front())) points_.pop_front();
  }

  std::deque<SessionDevices::Points> points_;
  uint64_t noted_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_ENQUEUED_WORK_H_
