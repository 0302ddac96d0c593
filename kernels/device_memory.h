// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DeviceMemory: where the allocator gets its segments, and how it learns that
// a stream has passed a point. Small on purpose: the allocation policy is
// written and tested against it (fake_device_memory.h), devices implement it.
// Thread-safety: implementations are called under one allocator's lock, from
// any thread.
#ifndef HOLDFAST_KERNELS_DEVICE_MEMORY_H_
#define HOLDFAST_KERNELS_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace holdfast {

using StreamId = uint32_t;

// A contiguous piece of device memory.
struct MemorySegment {
  uint64_t id = 0;  // unique within the DeviceMemory, never reused
  void* base = nullptr;
  size_t bytes = 0;
  int fd = -1;  // memfd that local clients may map; -1: not shareable
};

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // ResourceExhausted when the device has no more. May block briefly.
  virtual absl::StatusOr<MemorySegment> AllocateSegment(size_t bytes) = 0;
  // Waits for work that may still use it.
  virtual void FreeSegment(const MemorySegment& segment) = 0;

  // A point in `stream`: everything enqueued so far. 0 means "already passed",
  // which synchronous devices return always. Points may be asked about, and
  // waited for, any number of times.
  virtual uint64_t RecordPoint(StreamId stream) = 0;
  virtual bool PointPassed(uint64_t point) = 0;
  // Blocks until it has.
  virtual void WaitPoint(uint64_t point) = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_DEVICE_MEMORY_H_
