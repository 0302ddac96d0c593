// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// PinnedMemory: host memory that a device copies from and to while the host
// goes on; for a local session memfds, which its client maps.
#ifndef HOLDFAST_SERVER_MEMORY_PINNED_MEMORY_H_
#define HOLDFAST_SERVER_MEMORY_PINNED_MEMORY_H_

#include "kernels/device.h"
#include "server/memory/host_memory.h"

namespace holdfast {

class PinnedMemory final : public DeviceMemory {
 public:
  // `device` must outlive it.
  PinnedMemory(Device* device, bool shared)
      : device_(device), memory_(shared) {}

  absl::StatusOr<MemorySegment> AllocateSegment(size_t bytes) override {
    absl::StatusOr<MemorySegment> segment = memory_.AllocateSegment(bytes);
    if (!segment.ok()) return segment;
    absl::Status pinned = device_->PinHost(segment->base, segment->bytes);
    if (pinned.ok()) return segment;
    memory_.FreeSegment(*segment);
    return pinned;
  }
  void FreeSegment(const MemorySegment& segment) override {
    device_->UnpinHost(segment.base);
    memory_.FreeSegment(segment);
  }

  uint64_t RecordPoint(StreamId stream) override {
    return device_->RecordPoint(stream);
  }
  bool PointPassed(uint64_t point) override {
    return device_->PointPassed(point);
  }
  void WaitPoint(uint64_t point) override { device_->WaitPoint(point); }

 private:
  Device* const device_;
  HostMemory memory_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_MEMORY_PINNED_MEMORY_H_
