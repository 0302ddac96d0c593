// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// EventClock: when events of any stream of one GPU passed, by the host's steady
// clock. The driver tells distances between events as floats of milliseconds:
// 0.06 us of a second, so that what they are measured from moves on.
// Thread-safety: any thread, with the GPU set for it.
#ifndef HOLDFAST_KERNELS_CUDA_EVENT_CLOCK_H_
#define HOLDFAST_KERNELS_CUDA_EVENT_CLOCK_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <mutex>
#include <optional>

#include "kernels/cuda/host_clock.h"

namespace holdfast::cuda {

class EventClock {
 public:
  EventClock() = default;
  ~EventClock();
  EventClock(const EventClock&) = delete;
  EventClock& operator=(const EventClock&) = delete;

  static int64_t Now();  // nanoseconds

  // Of an event with times that has passed and was recorded after `recorded`.
  // It may keep the event, and then leaves another one, or null.
  std::optional<int64_t> Read(cudaEvent_t* event, int64_t recorded);

 private:
  std::mutex mutex_;                 // guards what follows
  cudaEvent_t reference_ = nullptr;  // passed at reference_s_
  double reference_s_ = 0;           // seconds since the first reference
  HostClock host_;
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_EVENT_CLOCK_H_
