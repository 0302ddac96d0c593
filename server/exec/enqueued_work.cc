// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/enqueued_work.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "proto/steady_time.h"

namespace holdfast {

bool EnqueuedWork::TooFar(uint64_t ops, absl::Duration lead) {
  if (MarkIsDue(ops, lead)) {
    Mark(ops);
    DropPassed();
  }
  if (!Ahead(ops, lead)) return false;
  Mark(ops);  // or nobody would hear that it has caught up
  DropPassed();
  return Ahead(ops, lead);
}

bool EnqueuedWork::MarkIsDue(uint64_t ops, absl::Duration lead) const {
  const uint64_t count = ops - marked_ops_;
  return count >= kOpsPerMark ||
         (count > 0 && lead != absl::InfiniteDuration() &&
          (seconds_per_op_ == 0 || count * seconds_per_op_ >= kSecondsPerMark));
}

bool EnqueuedWork::Ahead(uint64_t ops, absl::Duration lead) const {
  const uint64_t ahead = ops - passed_ops_;
  if (ahead >= kMostOps) return true;
  if (lead == absl::InfiniteDuration()) return false;
  if (seconds_per_op_ == 0) return ahead >= kFirstOps;
  // One op at least: it may be longer than the lead.
  return ahead > 0 && ahead * seconds_per_op_ >= absl::ToDoubleSeconds(lead);
}

void EnqueuedWork::Mark(uint64_t ops) {
  if (ops == marked_ops_) return;
  const SteadyTime now = SteadyNow();
  marks_.push_back({devices_.RecordTimedPoints(), ops, begun_, now});
  marked_ops_ = ops;
  begun_ = now;
}

std::vector<DeviceUse> EnqueuedWork::TakeUses() {
  DropPassed();
  return std::exchange(uses_, {});
}

SteadyTime EnqueuedWork::since() const {
  if (marks_.empty()) return SteadyTime::Future();
  SteadyTime since = marks_.front().begun;
  for (const auto& [device, passed_at] : passed_at_) {
    since = std::max(since, passed_at);
  }
  return since;
}

void EnqueuedWork::DropPassed() {
  const auto passed = [](const auto& one) {
    return one.first->PointPassed(one.second);
  };
  while (!marks_.empty() && std::all_of(marks_.front().points.begin(),
                                        marks_.front().points.end(), passed)) {
    Account(marks_.front());
    marks_.pop_front();
  }
}

void EnqueuedWork::Account(const Marked& mark) {
  const SteadyTime now = SteadyNow();
  const uint64_t ops = mark.ops - passed_ops_;
  passed_ops_ = mark.ops;
  absl::Duration longest;
  for (const auto& [device, point] : mark.points) {
    const std::optional<int64_t> time =
        point == 0 ? std::nullopt : device->TakeTime(point);
    const SteadyTime to = std::clamp(
        time ? SteadyTime::FromNanoseconds(*time) : now, mark.made, now);
    SteadyTime& passed_at =
        passed_at_.try_emplace(device, SteadyTime::Past()).first->second;
    const SteadyTime from = std::max(mark.begun, passed_at);
    passed_at = std::max(passed_at, to);
    if (to <= from) continue;
    longest = std::max(longest, to - from);
    uses_.push_back({device, from, to, ops});
  }
  const double per_op = absl::ToDoubleSeconds(longest) / ops;
  seconds_per_op_ =
      seconds_per_op_ == 0 ? per_op : (seconds_per_op_ + per_op) / 2;
}

}  // namespace holdfast
