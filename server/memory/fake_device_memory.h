// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// FakeDeviceMemory: an asynchronous device for tests. Streams advance only
// when told to; memory is host memory with a capacity.
// Thread-safety: as DeviceMemory; the test's thread may call the controls.
#ifndef HOLDFAST_SERVER_MEMORY_FAKE_DEVICE_MEMORY_H_
#define HOLDFAST_SERVER_MEMORY_FAKE_DEVICE_MEMORY_H_

#include <cstdlib>
#include <map>
#include <set>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/device_memory.h"

namespace holdfast {

class FakeDeviceMemory : public DeviceMemory {
 public:
  explicit FakeDeviceMemory(size_t capacity) : capacity_(capacity) {}
  ~FakeDeviceMemory() override {
    for (void* base : live_) std::free(base);
  }

  absl::StatusOr<MemorySegment> AllocateSegment(size_t bytes) override {
    if (used_ + bytes > capacity_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("fake device is full at ", used_));
    }
    used_ += bytes;
    MemorySegment segment;
    segment.id = next_id_++;
    segment.base = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    segment.bytes = bytes;
    live_.insert(segment.base);
    return segment;
  }
  void FreeSegment(const MemorySegment& segment) override {
    used_ -= segment.bytes;
    live_.erase(segment.base);
    std::free(segment.base);
  }
  uint64_t RecordPoint(StreamId stream) override {
    points_[next_point_] = stream;
    return next_point_++;
  }
  bool PointPassed(uint64_t point) override { return passed_.count(point) > 0; }
  void WaitPoint(uint64_t point) override {
    passed_.insert(point);
    ++waits_;
  }

  // Everything enqueued on `stream` so far is done.
  void Advance(StreamId stream) {
    for (const auto& [point, of] : points_) {
      if (of == stream) passed_.insert(point);
    }
  }
  size_t used() const { return used_; }
  int waits() const { return waits_; }

 private:
  const size_t capacity_;
  size_t used_ = 0;
  int waits_ = 0;
  uint64_t next_id_ = 1;
  uint64_t next_point_ = 1;
  std::map<uint64_t, StreamId> points_;
  std::set<uint64_t> passed_;
  std::set<void*> live_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_MEMORY_FAKE_DEVICE_MEMORY_H_
