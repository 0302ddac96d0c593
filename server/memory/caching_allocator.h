// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// CachingAllocator: hands out blocks of device memory and keeps freed ones
// for reuse, so that an op never waits for the system's allocator. One per
// session. The policy is PyTorch's: sizes rounded to 512 bytes, a small pool
// (2 MiB segments) and a large one, best fit, split and coalesce, one pool per
// stream, segments given back when memory is short.
//
// Invariants:
//  1. A segment is tiled by its blocks, linked in address order.
//  2. A free block is in exactly one place: a bin, a pool, or (until the
//     streams that used it have passed) the deferred list.
//  3. Two free neighbours in a pool never exist; bins may hold neighbours.
// Thread-safety: all methods from any thread (one lock, held for no call that
// takes memory from the device or gives it back: gigabytes take seconds).
#ifndef HOLDFAST_SERVER_MEMORY_CACHING_ALLOCATOR_H_
#define HOLDFAST_SERVER_MEMORY_CACHING_ALLOCATOR_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "kernels/device_memory.h"
#include "server/waits/ranked_mutex.h"

namespace holdfast {

class MemoryAccount;

// A piece of a segment. Owned by the allocator; valid until Free.
struct MemoryBlock {
  void* data = nullptr;
  size_t bytes = 0;      // rounded size
  size_t requested = 0;  // what the caller asked for
  uint64_t segment = 0;
  size_t offset = 0;  // from the segment's start
  StreamId stream = 0;
  bool in_use = false;

 private:
  friend class CachingAllocator;
  bool binned = false;
  MemoryBlock* previous = nullptr;  // neighbours in the segment
  MemoryBlock* next = nullptr;
  absl::InlinedVector<StreamId, 1> other_streams;
  absl::InlinedVector<uint64_t, 1> points;
};

struct MemoryStats {
  size_t in_use = 0;  // bytes in blocks handed out
  size_t cached = 0;  // bytes in segments, not handed out
  size_t peak_in_use = 0;
  size_t peak_held = 0;  // in use and cached together
  size_t segments = 0;
  uint64_t allocations = 0;  // calls so far
};

// One segment and the blocks that tile it, in the order of their addresses.
struct SegmentListing {
  struct Block {
    size_t bytes = 0;
    size_t requested = 0;  // 0 where it is not in use
    bool in_use = false;
    bool awaited = false;  // freed, until another stream's work has passed
  };
  uint64_t id = 0;
  size_t bytes = 0;
  bool small = false;
  std::vector<Block> blocks;
};

class CachingAllocator {
 public:
  static constexpr size_t kRounding = 512;
  static constexpr size_t kSmallLimit = size_t{1} << 20;  // small pool up to
  static constexpr size_t kSmallSegment = size_t{2} << 20;
  static constexpr size_t kMediumLimit = size_t{10} << 20;
  static constexpr size_t kMediumSegment = size_t{20} << 20;
  static constexpr size_t kLargeRounding = size_t{2} << 20;

  // `limit_bytes`: most bytes of segments held at once; 0: none. `home`: the
  // stream that most blocks are for. `account`: whose the segments are; null:
  // nobody counts.
  CachingAllocator(std::unique_ptr<DeviceMemory> memory, size_t limit_bytes,
                   StreamId home = 0,
                   std::shared_ptr<MemoryAccount> account = nullptr);
  // Frees all segments, in use or not.
  ~CachingAllocator();

  // A block of at least `bytes` (0 counts as 1) for work on `stream`, 512-byte
  // aligned, content undefined. ResourceExhausted names asked, in use, cached
  // and limit; then nothing has changed.
  absl::StatusOr<MemoryBlock*> Allocate(size_t bytes, StreamId stream);

  // Tells that work on another stream uses the block: after Free it waits
  // until that stream has passed.
  void UseOnStream(MemoryBlock* block, StreamId stream);

  // Returns a block; reusable at once by later work on the same stream.
  void Free(MemoryBlock* block);

  // Gives every segment without a used block back to the device; returns the
  // bytes given back. Waits for deferred blocks.
  size_t ReleaseCached();

  // A segment that is nobody's any more, still on its account.
  struct Idle {
    std::shared_ptr<DeviceMemory> memory;
    std::shared_ptr<MemoryAccount> account;
    MemorySegment segment;
  };
  // The same segments, for the caller to give back: that may take long, and the
  // caller has locks.
  std::vector<Idle> TakeIdle();
  // Gives them to the device. For a thread that must not wait (NoWait) another
  // does it later; TakeSegment knows.
  static void GiveBack(std::vector<Idle> idle);

  absl::StatusOr<MemorySegment> FindSegment(uint64_t id) const;
  // The handle of a segment (DeviceMemory::Export), which from now on is given
  // back with the allocator alone: others may look at it.
  absl::StatusOr<std::string> Export(uint64_t segment);
  MemoryStats stats() const;
  std::vector<SegmentListing> List() const;
  // peak_in_use and peak_held start again from what is now.
  void ResetPeak();
  size_t limit_bytes() const { return limit_bytes_; }
  // What is held already stays.
  void set_limit_bytes(size_t bytes) { limit_bytes_ = bytes; }
  const std::shared_ptr<MemoryAccount>& account() const { return account_; }
  // Which of the daemon's devices the memory is of, counted from 0. Set before
  // any use.
  int place() const { return place_; }
  void set_place(int place) { place_ = place; }

 private:
  // Small blocks freed are binned by exact size: reuse costs a few
  // nanoseconds and no search. As in the pools, the first in memory goes first:
  // what a block's address is depends on which blocks are free, not on the
  // order in which they became so, and the steps of a program get the same
  // addresses again, which recordings are made for (server/replay/).
  static constexpr size_t kBins = 64;
  // With this much in bins, they are coalesced before a segment is added.
  static constexpr size_t kBinnedBeforeGrowing = size_t{16} << 20;

  struct BySize {
    bool operator()(const MemoryBlock* a, const MemoryBlock* b) const;
  };
  using Pool = std::set<MemoryBlock*, BySize>;

  struct PoolKey {
    StreamId stream;
    bool small;
    bool operator<(const PoolKey& o) const {
      return stream != o.stream ? stream < o.stream : small < o.small;
    }
  };
  struct SegmentRecord {
    MemorySegment segment;
    MemoryBlock* first = nullptr;
    std::string handle;  // once exported
  };

  // One attempt. `refused`: set when it was the account that refused.
  absl::StatusOr<MemoryBlock*> TryAllocate(size_t bytes, StreamId stream,
                                           bool* refused);
  // A segment of the device, on the account.
  absl::StatusOr<MemorySegment> TakeSegment(size_t bytes, bool* refused);
  // The same, by a thread that may wait.
  static absl::StatusOr<MemorySegment> TakeSegmentOf(DeviceMemory* memory,
                                                     MemoryAccount* account,
                                                     size_t bytes,
                                                     bool* refused);
  std::vector<Idle> DetachIdle();  // REQUIRES: mutex_ held
  MemoryBlock* TakeFromPool(size_t rounded, StreamId stream);
  // The rest of Allocate's way, with `lock` held but for calls of the device.
  using Lock = RankedLock;
  absl::StatusOr<MemoryBlock*> Grow(size_t rounded, StreamId stream,
                                    bool* refused, Lock* lock);
  absl::StatusOr<MemorySegment> TakeWithin(size_t bytes, bool* refused,
                                           Lock* lock);
  MemoryBlock* Split(MemoryBlock* block, size_t rounded);
  void ReturnToPool(MemoryBlock* block);
  void EmptyBins();
  void CollectDeferred(bool wait);
  // Gives idle ones back without the lock; returns their bytes.
  size_t FreeIdleSegments(Lock* lock);
  absl::Status OutOfMemory(size_t asked, const absl::Status& cause) const;
  bool IsSmallSegment(uint64_t id) const;

  mutable RankedMutex mutex_{LockRank::kAllocator};
  const std::shared_ptr<DeviceMemory> memory_;
  std::atomic<size_t> limit_bytes_;
  const StreamId home_;
  int place_ = 0;
  const std::shared_ptr<MemoryAccount> account_;
  std::map<uint64_t, SegmentRecord> segments_;
  std::map<PoolKey, Pool> pools_;
  // Bins of the home stream, a session's only one; others use pools. Heaps.
  std::array<std::vector<MemoryBlock*>, kBins> bins_;
  std::vector<MemoryBlock*> deferred_;
  size_t binned_bytes_ = 0;
  size_t segment_bytes_ = 0;
  size_t peak_segment_bytes_ = 0;
  size_t in_use_ = 0;
  size_t peak_in_use_ = 0;
  uint64_t allocations_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_MEMORY_CACHING_ALLOCATOR_H_
