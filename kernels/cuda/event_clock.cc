// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/event_clock.h"

#include <chrono>
#include <utility>

namespace holdfast::cuda {
namespace {

constexpr float kFarMs = 1000;

}  // namespace

EventClock::~EventClock() {
  if (reference_ != nullptr) cudaEventDestroy(reference_);
}

int64_t EventClock::Now() {
  return std::chrono::nanoseconds(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::optional<int64_t> EventClock::Read(cudaEvent_t* event, int64_t recorded) {
  std::lock_guard<std::mutex> lock(mutex_);
  float ms = 0;
  if (reference_ == nullptr) {
    reference_ = std::exchange(*event, nullptr);
  } else if (cudaEventElapsedTime(&ms, reference_, *event) != cudaSuccess) {
    cudaGetLastError();  // not the next launch's
    return std::nullopt;
  }
  const double seconds = reference_s_ + ms * 1e-3;
  if (ms > kFarMs) {
    std::swap(reference_, *event);
    reference_s_ = seconds;
  }
  host_.Narrow(seconds, recorded, Now());
  return host_.ToHost(seconds);
}

}  // namespace holdfast::cuda
