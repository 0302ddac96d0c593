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
  const absl::Time now = SteadyNow();
  marks_.push_back({devices_.RecordTimedPoints(), ops, begun_, now, {}});
  marked_ops_ = ops;
  begun_ = now;
}

std::vector<DeviceUse> EnqueuedWork::TakeUses() {
  DropPassed();
  return std::exchange(uses_, {});
}

void EnqueuedWork::SetClocks() {
  for (const auto& [device, point] : devices_.RecordTimedPoints()) {
    device->WaitPoint(point);
    (void)device->TakeSeconds(point);
    clocks_[device].zero = SteadyNow();
  }
}

void EnqueuedWork::DropPassed() {
  const auto passed = [](const auto& one) {
    return one.first->PointPassed(one.second);
  };
  std::vector<Marked> done;
  while (!marks_.empty() && std::all_of(marks_.front().points.begin(),
                                        marks_.front().points.end(), passed)) {
    done.push_back(std::move(marks_.front()));
    marks_.pop_front();
  }
  if (done.empty()) return;
  // All before any is accounted for: the last says most about the clocks.
  const absl::Time now = SteadyNow();
  for (Marked& mark : done) ReadClocks(&mark, now);
  for (const Marked& mark : done) Account(mark);
}

void EnqueuedWork::ReadClocks(Marked* mark, absl::Time now) {
  for (const auto& [device, point] : mark->points) {
    Clock& clock = clocks_.try_emplace(device, Clock{0, now}).first->second;
    const std::optional<double> since =
        point == 0 ? std::nullopt : device->TakeSeconds(point);
    clock.last =
        since ? clock.last + *since : absl::ToDoubleSeconds(now - clock.zero);
    const absl::Duration last = absl::Seconds(clock.last);
    clock.zero = std::clamp(clock.zero, mark->made - last, now - last);
    mark->times.push_back(clock.last);
  }
}

void EnqueuedWork::Account(const Marked& mark) {
  const uint64_t ops = mark.ops - passed_ops_;
  passed_ops_ = mark.ops;
  absl::Duration longest;
  for (size_t i = 0; i < mark.points.size(); ++i) {
    Device* const device = mark.points[i].first;
    Clock& clock = clocks_[device];
    const absl::Time from = std::max(mark.begun, clock.passed);
    const absl::Time to = clock.zero + absl::Seconds(mark.times[i]);
    clock.passed = std::max(clock.passed, to);
    if (to <= from) continue;
    longest = std::max(longest, to - from);
    uses_.push_back({device, from, to, ops});
  }
  const double per_op = absl::ToDoubleSeconds(longest) / ops;
  seconds_per_op_ =
      seconds_per_op_ == 0 ? per_op : (seconds_per_op_ + per_op) / 2;
}

}  // namespace holdfast
