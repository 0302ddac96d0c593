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
#include <string>

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

// What lets another process of this machine open a device's memory: CUDA's 64
// bytes (cudaIpcMemHandle_t), or the path of a file where the device is plain
// memory.
enum class MemoryHandleKind { kNone = 0, kCudaIpc = 1, kFile = 2 };

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // ResourceExhausted when the device has no more. May take long, and may be
  // called beside any other call, itself included.
  virtual absl::StatusOr<MemorySegment> AllocateSegment(size_t bytes) = 0;
  // Waits for work that may still use it.
  virtual void FreeSegment(const MemorySegment& segment) = 0;
  // Whether both may be called by any thread at any time, also while this
  // device's owner goes on.
  virtual bool any_thread() const { return false; }
  // Zeros the whole of a new segment, allocated for `stream`, before anybody
  // has it, on whatever stream: what another user had there is not to be read.
  // Nothing to do where new memory is clear.
  virtual absl::Status Clear(const MemorySegment& /*segment*/,
                             StreamId /*stream*/) {
    return absl::OkStatus();
  }
  // A handle by which another process reads and writes the whole segment, to be
  // freed when no process has it open any more.
  virtual absl::StatusOr<std::string> Export(const MemorySegment& /*segment*/) {
    return absl::UnimplementedError(
        "[memory] no other process can open this device's memory");
  }

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
