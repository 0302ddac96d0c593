// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/memory/caching_allocator.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/memory/fake_device_memory.h"
#include "server/memory/host_memory.h"

namespace holdfast {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

struct Fixture {
  explicit Fixture(size_t capacity = 1024 * kMiB, size_t limit = 0)
      : device(new FakeDeviceMemory(capacity)),
        allocator(std::unique_ptr<DeviceMemory>(device), limit) {}
  FakeDeviceMemory* device;  // owned by the allocator
  CachingAllocator allocator;
};

TEST(CachingAllocatorTest, RoundsTo512AndAligns) {
  Fixture f;
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{512}, size_t{513}}) {
    MemoryBlock* block = f.allocator.Allocate(bytes, 0).value();
    EXPECT_EQ(block->bytes % 512, 0u);
    EXPECT_GE(block->bytes, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->data) % 512, 0u);
  }
  EXPECT_EQ(f.allocator.stats().in_use, 512u * 5);
}

// Makes and frees large segments when it is let.
class SlowMemory final : public FakeDeviceMemory {
 public:
  explicit SlowMemory(size_t capacity) : FakeDeviceMemory(capacity) {}
  absl::StatusOr<MemorySegment> AllocateSegment(size_t bytes) override {
    if (bytes >= 100 * kMiB) Wait();
    return FakeDeviceMemory::AllocateSegment(bytes);
  }
  void FreeSegment(const MemorySegment& segment) override {
    if (segment.bytes >= 100 * kMiB) Wait();
    FakeDeviceMemory::FreeSegment(segment);
  }
  void Close() { open_.store(false); }
  void Open() { open_.store(true); }
  bool waited_for() const { return waiting_.load() > 0; }

 private:
  void Wait() {
    waiting_.fetch_add(1);
    while (!open_.load()) std::this_thread::yield();
    waiting_.fetch_sub(1);
  }
  std::atomic<bool> open_{true};
  std::atomic<int> waiting_{0};
};

// Item 4 of the server's review: the worker's next op must not wait until a
// client's gigabytes are there.
TEST(CachingAllocatorTest, Review04OthersGoOnWhileASegmentIsMadeOrFreed) {
  auto* memory = new SlowMemory(1024 * kMiB);
  CachingAllocator allocator(std::unique_ptr<DeviceMemory>(memory), 700 * kMiB);
  const auto others_go_on = [&] {
    while (!memory->waited_for()) std::this_thread::yield();
    MemoryBlock* small = allocator.Allocate(1000, 0).value();
    MemoryBlock* medium = allocator.Allocate(30 * kMiB, 0).value();
    // What is being made is counted: nobody takes the same room.
    EXPECT_FALSE(allocator.Allocate(300 * kMiB, 0).ok());
    EXPECT_GT(allocator.stats().allocations, 0u);
    allocator.Free(small);
    allocator.Free(medium);
  };
  memory->Close();
  MemoryBlock* large = nullptr;
  std::thread maker([&] { large = allocator.Allocate(500 * kMiB, 0).value(); });
  others_go_on();
  memory->Open();
  maker.join();
  EXPECT_EQ(allocator.stats().in_use, 500 * kMiB);
  allocator.Free(large);

  memory->Close();
  std::thread freer([&] { allocator.ReleaseCached(); });
  while (!memory->waited_for()) std::this_thread::yield();
  allocator.Free(allocator.Allocate(1000, 0).value());
  EXPECT_EQ(allocator.stats().in_use, 0u);
  memory->Open();
  freer.join();
  allocator.ReleaseCached();
  EXPECT_EQ(allocator.stats().segments, 0u);
}

TEST(CachingAllocatorTest, ReusesFreedBlockOfSameSize) {
  Fixture f;
  for (size_t bytes : {size_t{40}, 100 * kMiB, 200000 + kMiB}) {
    MemoryBlock* block = f.allocator.Allocate(bytes, 0).value();
    void* data = block->data;
    f.allocator.Free(block);
    EXPECT_EQ(f.allocator.Allocate(bytes, 0).value()->data, data);
  }
}

// Whatever order blocks are freed in.
TEST(CachingAllocatorTest, ThatIsFreeAndFirstInMemoryIsTakenFirst) {
  for (size_t bytes : {size_t{512}, size_t{20000}}) {
    Fixture f;
    std::vector<MemoryBlock*> blocks;
    for (int i = 0; i < 7; ++i) {
      blocks.push_back(f.allocator.Allocate(bytes, 0).value());
    }
    std::vector<void*> places;
    for (MemoryBlock* block : blocks) places.push_back(block->data);
    std::sort(places.begin(), places.end());
    for (int i : {3, 0, 6, 5, 1, 4, 2}) f.allocator.Free(blocks[i]);
    for (void* place : places) {
      EXPECT_EQ(f.allocator.Allocate(bytes, 0).value()->data, place) << bytes;
    }
  }
}

TEST(CachingAllocatorTest, SmallBlocksShareASegment) {
  Fixture f;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(f.allocator.Allocate(512, 0).ok());
  EXPECT_EQ(f.allocator.stats().segments, 1u);
}

TEST(CachingAllocatorTest, CoalescesNeighboursUnderPressure) {
  // Two 2 MiB segments are all there is.
  Fixture f(4 * kMiB);
  std::vector<MemoryBlock*> blocks;
  while (true) {
    auto block = f.allocator.Allocate(4096, 0);
    if (!block.ok()) break;
    blocks.push_back(*block);
  }
  EXPECT_EQ(blocks.size(), 1024u);
  for (MemoryBlock* block : blocks) f.allocator.Free(block);
  EXPECT_TRUE(f.allocator.Allocate(kMiB, 0).ok());
  EXPECT_TRUE(f.allocator.Allocate(kMiB, 0).ok());
}

TEST(CachingAllocatorTest, GivesIdleSegmentsBackBeforeFailing) {
  Fixture f(64 * kMiB);
  f.allocator.Free(f.allocator.Allocate(40 * kMiB, 0).value());
  EXPECT_EQ(f.device->used(), 40 * kMiB);
  EXPECT_TRUE(f.allocator.Allocate(60 * kMiB, 0).ok());
  EXPECT_EQ(f.device->used(), 60 * kMiB);
}

TEST(CachingAllocatorTest, OutOfMemoryNamesTheFiguresAndChangesNothing) {
  Fixture f(1024 * kMiB, /*limit=*/32 * kMiB);
  MemoryBlock* block = f.allocator.Allocate(20 * kMiB, 0).value();
  const absl::Status status = f.allocator.Allocate(16 * kMiB, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::HasSubstr("asked=16.0 MiB"),
                             testing::HasSubstr("in use=20.0 MiB"),
                             testing::HasSubstr("limit=32.0 MiB"),
                             testing::HasSubstr("--memory_limit")));
  EXPECT_EQ(f.allocator.stats().in_use, 20 * kMiB);
  f.allocator.Free(block);
  EXPECT_TRUE(f.allocator.Allocate(16 * kMiB, 0).ok());
}

TEST(CachingAllocatorTest, AbsurdSizesFail) {
  Fixture f;
  for (size_t bytes : {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 50}) {
    EXPECT_FALSE(f.allocator.Allocate(bytes, 0).ok());
  }
}

TEST(CachingAllocatorTest, LimitCountsWhatIsHeldExactly) {
  Fixture f(1024 * kMiB, /*limit=*/20 * kMiB);
  // A comfortable 20 MiB segment would not fit beside the small one.
  ASSERT_TRUE(f.allocator.Allocate(512, 0).ok());
  EXPECT_TRUE(f.allocator.Allocate(9 * kMiB, 0).ok());
  EXPECT_LE(f.device->used(), 20 * kMiB);
}

TEST(CachingAllocatorTest, StreamsHaveTheirOwnPools) {
  Fixture f;
  MemoryBlock* block = f.allocator.Allocate(kMiB, 1).value();
  void* data = block->data;
  f.allocator.Free(block);
  EXPECT_NE(f.allocator.Allocate(kMiB, 2).value()->data, data);
  EXPECT_EQ(f.allocator.Allocate(kMiB, 1).value()->data, data);
}

TEST(CachingAllocatorTest, BlockUsedOnAnotherStreamWaitsForIt) {
  Fixture f;
  MemoryBlock* block = f.allocator.Allocate(kMiB, 1).value();
  void* data = block->data;
  f.allocator.UseOnStream(block, 2);
  f.allocator.Free(block);
  // Stream 2 may still read it: not reusable, even on its own stream.
  EXPECT_NE(f.allocator.Allocate(kMiB, 1).value()->data, data);
  f.device->Advance(2);
  EXPECT_EQ(f.allocator.Allocate(kMiB, 1).value()->data, data);
}

TEST(CachingAllocatorTest, PressureWaitsForDeferredBlocks) {
  Fixture f(20 * kMiB);
  MemoryBlock* block = f.allocator.Allocate(20 * kMiB, 1).value();
  f.allocator.UseOnStream(block, 2);
  f.allocator.Free(block);
  EXPECT_TRUE(f.allocator.Allocate(20 * kMiB, 1).ok());
  EXPECT_EQ(f.device->waits(), 1);
}

TEST(CachingAllocatorTest, ReleaseCachedKeepsWhatIsUsed) {
  Fixture f;
  MemoryBlock* small = f.allocator.Allocate(100, 0).value();
  f.allocator.Free(f.allocator.Allocate(100 * kMiB, 0).value());
  EXPECT_EQ(f.allocator.ReleaseCached(), 100 * kMiB);
  EXPECT_EQ(f.device->used(), 2 * kMiB);
  f.allocator.Free(small);
  EXPECT_EQ(f.allocator.ReleaseCached(), 2 * kMiB);
  EXPECT_EQ(f.device->used(), 0u);
}

TEST(CachingAllocatorTest, ListsBlocksThatTileTheirSegments) {
  Fixture f;
  f.allocator.Allocate(700, 0).value();
  MemoryBlock* awaited = f.allocator.Allocate(1000, 0).value();
  f.allocator.Allocate(3 * kMiB, 0).value();
  f.allocator.UseOnStream(awaited, 1);
  f.allocator.Free(awaited);
  const std::vector<SegmentListing> all = f.allocator.List();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[0].small && !all[1].small);
  for (const SegmentListing& segment : all) {
    size_t bytes = 0;
    for (const SegmentListing::Block& block : segment.blocks) {
      bytes += block.bytes;
    }
    EXPECT_EQ(bytes, segment.bytes);
  }
  EXPECT_EQ(all[0].blocks[0].requested, 700u);
  EXPECT_EQ(all[0].blocks[0].bytes, 1024u);
  EXPECT_TRUE(all[0].blocks[0].in_use && !all[0].blocks[0].awaited);
  EXPECT_TRUE(!all[0].blocks[1].in_use && all[0].blocks[1].awaited);
  EXPECT_FALSE(all[0].blocks[2].in_use || all[0].blocks[2].awaited);
  EXPECT_EQ(all[1].blocks[0].requested, 3 * kMiB);
}

// Random traffic; every block is filled and checked, so an overlap shows.
TEST(CachingAllocatorTest, RandomTrafficNeverOverlapsAndLeavesNothing) {
  Fixture f(256 * kMiB);
  std::mt19937 random(7);
  std::vector<std::pair<MemoryBlock*, unsigned char>> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.size() < 50 || random() % 2 == 0) {
      const size_t bytes = size_t{1} << (random() % 22);
      auto block = f.allocator.Allocate(bytes, random() % 2);
      if (!block.ok()) continue;
      const unsigned char mark = random() % 256;
      std::memset((*block)->data, mark, std::min<size_t>(bytes, 64));
      static_cast<unsigned char*>((*block)->data)[bytes - 1] = mark;
      live.push_back({*block, mark});
    } else {
      std::swap(live[random() % live.size()], live.back());
      auto [block, mark] = live.back();
      const auto* data = static_cast<unsigned char*>(block->data);
      ASSERT_EQ(data[0], mark);
      ASSERT_EQ(data[block->requested - 1], mark);
      f.allocator.Free(block);
      live.pop_back();
    }
  }
  for (auto& [block, mark] : live) f.allocator.Free(block);
  f.allocator.ReleaseCached();
  EXPECT_EQ(f.device->used(), 0u);
  EXPECT_EQ(f.allocator.stats().in_use, 0u);
  EXPECT_EQ(f.allocator.stats().cached, 0u);
}

TEST(CachingAllocatorTest, ThreadsMayShareIt) {
  Fixture f;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        f.allocator.Free(f.allocator.Allocate(i * 37, 0).value());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(f.allocator.stats().in_use, 0u);
}

TEST(HostMemoryTest, SharedSegmentsAreSealedMemfds) {
  HostMemory memory(/*shared=*/true);
  const MemorySegment segment = memory.AllocateSegment(2 * kMiB).value();
  ASSERT_GE(segment.fd, 0);
  std::memset(segment.base, 1, segment.bytes);
  memory.FreeSegment(segment);
}

TEST(HostMemoryTest, RefusalIsAnErrorNotASignal) {
  for (bool shared : {false, true}) {
    HostMemory memory(shared);
    const absl::Status status =
        memory.AllocateSegment(size_t{1} << 47).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << shared;
  }
}

}  // namespace
}  // namespace holdfast
