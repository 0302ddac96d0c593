// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/memory/pinned_memory.h"

namespace holdfast {

absl::StatusOr<MemorySegment> PinnedMemory::AllocateSegment(size_t bytes) {
  absl::StatusOr<MemorySegment> segment = memory_.AllocateSegment(bytes);
  if (!segment.ok()) return segment;
  absl::Status pinned = devices_[0]->PinHost(segment->base, segment->bytes);
  if (pinned.ok()) return segment;
  memory_.FreeSegment(*segment);
  return pinned;
}

void PinnedMemory::FreeSegment(const MemorySegment& segment) {
  // UnpinHost waits for its own device alone.
  for (const auto& [name, point] : points_) {
    point.first->WaitPoint(point.second);
  }
  points_.clear();
  devices_[0]->UnpinHost(segment.base);
  memory_.FreeSegment(segment);
}

uint64_t PinnedMemory::RecordPoint(StreamId stream) {
  Device* const device = devices_[stream >> kPlaceBit];
  const uint64_t point =
      device->RecordPoint(stream & ((StreamId{1} << kPlaceBit) - 1));
  if (point == 0) return 0;
  points_[++last_point_] = {device, point};
  return last_point_;
}

bool PinnedMemory::PointPassed(uint64_t point) {
  const auto it = points_.find(point);
  if (it == points_.end()) return true;
  if (!it->second.first->PointPassed(it->second.second)) return false;
  points_.erase(it);
  return true;
}

void PinnedMemory::WaitPoint(uint64_t point) {
  const auto it = points_.find(point);
  if (it == points_.end()) return;
  it->second.first->WaitPoint(it->second.second);
  points_.erase(it);
}

}  // namespace holdfast
