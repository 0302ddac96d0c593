// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DeviceHealth: the error that took a device away for good, if one did.
// Thread-safety: all methods from any thread.
#ifndef HOLDFAST_KERNELS_DEVICE_HEALTH_H_
#define HOLDFAST_KERNELS_DEVICE_HEALTH_H_

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

#include "absl/status/status.h"

namespace holdfast {

class DeviceHealth {
 public:
  using OnLost = std::function<void(const absl::Status&)>;
  explicit DeviceHealth(OnLost on_lost = nullptr)
      : on_lost_(std::move(on_lost)) {}
  // Before the first Lose.
  void set_on_lost(OnLost on_lost) { on_lost_ = std::move(on_lost); }

  // The first one stays, and is told.
  void Lose(const absl::Status& why) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!why_.ok()) return;
      why_ = why;
      lost_.store(true, std::memory_order_release);
    }
    if (on_lost_ != nullptr) on_lost_(why);
  }
  absl::Status status() const {
    if (!lost_.load(std::memory_order_acquire)) return absl::OkStatus();
    std::lock_guard<std::mutex> lock(mutex_);
    return why_;
  }

 private:
  OnLost on_lost_;
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;  // guards what follows
  absl::Status why_;
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_DEVICE_HEALTH_H_
