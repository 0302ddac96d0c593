// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// One memory that two devices copy from: blocks wait for the device that uses
// them, whatever the other's stream of that number has done.
#include "server/memory/pinned_memory.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/exec/cpu_device.h"
#include "server/fake_device/fake_device.h"
#include "server/memory/caching_allocator.h"

namespace holdfast {
namespace {

constexpr StreamId kHost = ~StreamId{0};
constexpr size_t kBytes = 4096;

std::unique_ptr<Device> NewCpu() { return NewCpuDevice(1); }

// A device with one stream, and memory that copies go to.
struct OneDevice {
  explicit OneDevice(int index)
      : device(absl::ZeroDuration(), &NewCpu, nullptr, index),
        stream(device.CreateStream(0).value()),
        memory(device.CreateMemory(false)),
        segment(memory->AllocateSegment(kBytes).value()) {}
  ~OneDevice() {
    memory->FreeSegment(segment);
    device.DestroyStream(stream);
  }
  absl::Status Upload(const void* from) {
    return device.Copy(stream, Device::CopyKind::kToDevice, segment.base, from,
                       kBytes);
  }

  FakeDevice device;
  const StreamId stream;
  const std::unique_ptr<DeviceMemory> memory;
  const MemorySegment segment;
};

class PinnedMemoryTest : public testing::Test {
 protected:
  PinnedMemoryTest() { EXPECT_EQ(first_.stream, second_.stream); }

  std::unique_ptr<PinnedMemory> New() {
    return std::make_unique<PinnedMemory>(
        std::vector<Device*>{&first_.device, &second_.device},
        /*shared=*/false);
  }
  OneDevice& At(int place) { return place == 0 ? first_ : second_; }

  OneDevice first_{0}, second_{1};
};

TEST_F(PinnedMemoryTest, ABlockWaitsForTheDeviceThatCopiesIt) {
  CachingAllocator allocator(New(), 0, kHost);
  for (const int place : {0, 1}) {
    OneDevice& at = At(place);
    at.device.Hold(at.stream, true);
    MemoryBlock* const block = allocator.Allocate(kBytes, kHost).value();
    allocator.UseOnStream(block, PinnedMemory::NameOf(place, at.stream));
    ASSERT_TRUE(at.Upload(block->data).ok());
    allocator.Free(block);
    MemoryBlock* const other = allocator.Allocate(kBytes, kHost).value();
    EXPECT_NE(other, block) << place;
    at.device.Hold(at.stream, false);
    EXPECT_TRUE(at.device.Synchronize(at.stream).ok());
    MemoryBlock* const again = allocator.Allocate(kBytes, kHost).value();
    EXPECT_EQ(again, block) << place;
    allocator.Free(other);
    allocator.Free(again);
  }
}

TEST_F(PinnedMemoryTest, PointsMayBeAskedAboutAgain) {
  const std::unique_ptr<PinnedMemory> memory = New();
  second_.device.Hold(second_.stream, true);
  const MemorySegment segment = memory->AllocateSegment(kBytes).value();
  ASSERT_TRUE(second_.Upload(segment.base).ok());
  const StreamId name = PinnedMemory::NameOf(1, second_.stream);
  const uint64_t point = memory->RecordPoint(name);
  const uint64_t same = memory->RecordPoint(name);
  EXPECT_NE(point, same);
  EXPECT_FALSE(memory->PointPassed(point));
  EXPECT_TRUE(memory->PointPassed(
      memory->RecordPoint(PinnedMemory::NameOf(0, first_.stream))));
  second_.device.Hold(second_.stream, false);
  memory->WaitPoint(point);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(memory->PointPassed(point));
    EXPECT_TRUE(memory->PointPassed(same));
    memory->WaitPoint(same);
  }
  memory->FreeSegment(segment);
}

// As memory that goes while a block of it is still being copied.
TEST_F(PinnedMemoryTest, AFreedSegmentWaitsForEveryDevice) {
  const std::unique_ptr<PinnedMemory> memory = New();
  second_.device.Hold(second_.stream, true);
  const MemorySegment segment = memory->AllocateSegment(kBytes).value();
  ASSERT_TRUE(second_.Upload(segment.base).ok());
  memory->RecordPoint(PinnedMemory::NameOf(1, second_.stream));
  std::atomic<bool> released = false;
  std::thread later([&] {
    absl::SleepFor(absl::Milliseconds(30));
    released = true;
    second_.device.Hold(second_.stream, false);
  });
  memory->FreeSegment(segment);
  EXPECT_TRUE(released.load());
  later.join();
  EXPECT_TRUE(second_.device.Synchronize(second_.stream).ok());
}

}  // namespace
}  // namespace holdfast
