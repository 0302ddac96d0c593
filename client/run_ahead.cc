// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/run_ahead.h"

#include <algorithm>
#include <utility>

namespace holdfast::client {
namespace {

// Probes in the work that may be ahead.
constexpr double kProbesAhead = 8;
// Sums of costs stay below this.
constexpr double kMostCost = 4e18;
// The daemon adds up a session's time after each of its turns, so that an
// answer may come before the time of what it stands behind.
constexpr double kLeastSeconds = 2e-3;

}  // namespace

RunAhead::RunAhead(double seconds, std::atomic<bool>* too_far)
    : bound_seconds_(std::max(seconds, 0.0)), too_far_(too_far) {
  const double first = bound_seconds_ / kProbesAhead * 1e9;
  probe_at_ = static_cast<uint64_t>(std::min(first, kMostCost));
}

uint64_t RunAhead::Probe() {
  std::lock_guard<std::mutex> lock(mutex_);
  const double step = bound_seconds_ / kProbesAhead / seconds_per_cost_;
  probe_at_ = static_cast<uint64_t>(
      std::min(static_cast<double>(sent_) + step, kMostCost));
  probed_ = sent_;
  probes_.push_back({++last_probe_, sent_});
  Judge();
  return last_probe_;
}

void RunAhead::Answered(uint64_t probe, double device_seconds) {
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t before = done_;
  while (!probes_.empty() && probes_.front().probe <= probe) {
    done_ = probes_.front().cost;
    last_answered_ = probes_.front().probe;
    probes_.pop_front();
  }
  if (device_seconds_ >= 0) {
    new_seconds_ += std::max(device_seconds - device_seconds_, 0.0);
    new_cost_ += static_cast<double>(done_ - before);
  }
  if (new_seconds_ >= kLeastSeconds && new_cost_ > 0) {
    recent_seconds_ = recent_seconds_ / 2 + std::exchange(new_seconds_, 0);
    recent_cost_ = recent_cost_ / 2 + std::exchange(new_cost_, 0);
    seconds_per_cost_ = recent_seconds_ / recent_cost_;
  }
  device_seconds_ = std::max(device_seconds_, device_seconds);
  Judge();
}

bool RunAhead::answered(uint64_t probe) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return last_answered_ >= probe;
}

double RunAhead::Ahead() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return AheadLocked();
}

double RunAhead::AheadLocked() const {
  return static_cast<double>(probed_ - done_) * seconds_per_cost_;
}

void RunAhead::Judge() {
  too_far_->store(probes_.size() > 1 && AheadLocked() > bound_seconds_,
                  std::memory_order_relaxed);
}

}  // namespace holdfast::client
