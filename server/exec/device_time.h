// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DeviceTime: whose the time of an asynchronous device was. From outside one
// sees when a stream's work ends, not when it had the device: it may have
// waited for another stream's kernel. The time between two ends is that of the
// work which ended last, as if the device did one thing after the other. So all
// parts together are the time in which it had work; kernels that did run side
// by side share it in the order in which they end. Where only the last of
// several ops was seen to end, the others are taken to have ended evenly
// before. Thread-safety: none.
#ifndef HOLDFAST_SERVER_EXEC_DEVICE_TIME_H_
#define HOLDFAST_SERVER_EXEC_DEVICE_TIME_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "kernels/device.h"
#include "proto/steady_time.h"

namespace holdfast {

// A session's work on a device, from when it could begin to its end.
struct DeviceUse {
  Device* device;
  SteadyTime from, to;
  uint64_t ops;  // at least 1
};

class DeviceTime {
 public:
  // An op ended that could begin at `from`: the seconds that are its session's.
  // Ops come in the order in which they end.
  double PartOf(SteadyTime from, SteadyTime to) {
    const absl::Duration part = to - std::max(from, ended_);
    ended_ = std::max(ended_, to);
    return std::max(0.0, absl::ToDoubleSeconds(part));
  }

 private:
  SteadyTime ended_ = SteadyTime::Past();  // the last use of all
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_DEVICE_TIME_H_
