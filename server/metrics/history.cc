// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/history.h"

#include <algorithm>
#include <chrono>

namespace holdfast {

History::History(SessionRegistry* registry) : registry_(registry) {
  thread_ = std::thread([this] { Loop(); });
}

History::~History() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_one();
  thread_.join();
}

std::vector<History::Sample> History::Samples() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return {samples_.begin(), samples_.end()};
}

void History::Loop() {
  for (bool stop = false; !stop;) {
    Take();
    std::unique_lock<std::mutex> lock(mutex_);
    stop = stopping_.wait_for(lock, std::chrono::seconds(1),
                              [this] { return stop_; });
  }
}

void History::Take() {
  const v1::StatsReply stats = registry_->Stats();
  const SessionTotals totals = registry_->Totals();
  Sample sample;
  sample.uptime_seconds = stats.uptime_seconds();
  sample.sessions = stats.sessions_size();
  uint64_t ops = totals.ended_ops;
  double device_seconds = totals.ended_device_seconds;
  for (const v1::SessionStats& session : stats.sessions()) {
    sample.bytes_in_use += session.bytes_in_use();
    sample.bytes_cached += session.bytes_cached();
    sample.queued_bytes += session.queued_bytes();
    if (session.queued_bytes() > 0) ++sample.waiting;
    ops += session.ops();
    device_seconds += session.device_seconds();
  }
  const double elapsed = sample.uptime_seconds - uptime_seconds_;
  // A session that ends between the two looks is missing from one of them.
  if (uptime_seconds_ > 0 && elapsed > 0 && ops >= ops_) {
    sample.ops_per_second = static_cast<double>(ops - ops_) / elapsed;
    sample.busy =
        std::clamp((device_seconds - device_seconds_) / elapsed, 0.0, 1.0);
  }
  ops_ = ops;
  device_seconds_ = device_seconds;
  uptime_seconds_ = sample.uptime_seconds;
  std::lock_guard<std::mutex> lock(mutex_);
  samples_.push_back(sample);
  if (samples_.size() > kSamples) samples_.pop_front();
}

}  // namespace holdfast
