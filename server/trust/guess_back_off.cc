// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/trust/guess_back_off.h"

#include <algorithm>

#include "proto/steady_time.h"

namespace holdfast {

absl::Duration GuessBackOff::Wait(const std::string& origin, SteadyTime now) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(origin);
  if (found == entries_.end()) return absl::ZeroDuration();
  // A clock that was set back must not lock anybody out for longer.
  return std::clamp(found->second.until - now, absl::ZeroDuration(), kLongest);
}

void GuessBackOff::Mistake(const std::string& origin, SteadyTime now) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (entries_.size() >= kMaxOrigins && !entries_.contains(origin)) Trim(now);
  Entry& entry = entries_[origin];
  if (now - entry.latest > kForget) entry.mistakes = 0;
  entry.latest = now;
  ++entry.mistakes;
  if (entry.mistakes < kFreeMistakes) return;
  const int doublings = std::min(entry.mistakes - kFreeMistakes, 16);
  entry.until = now + std::min(kFirst * (1 << doublings), kLongest);
}

void GuessBackOff::Trim(SteadyTime now) {
  SteadyTime oldest = SteadyTime::Future();
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto next = std::next(it);
    if (now - it->second.latest > kForget) {
      entries_.erase(it);
    } else {
      oldest = std::min(oldest, it->second.latest);
    }
    it = next;
  }
  if (entries_.size() < kMaxOrigins) return;
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->second.latest != oldest) continue;
    entries_.erase(it);
    return;
  }
}

size_t GuessBackOff::origins() {
  std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

}  // namespace holdfast
