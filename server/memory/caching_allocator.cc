// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/memory/caching_allocator.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/limits/room_for_others.h"
#include "server/memory/heap_meter.h"
#include "server/memory/memory_ledger.h"
#include "server/waits/no_wait.h"

namespace holdfast {
namespace {

size_t RoundUp(size_t value, size_t step) {
  return (value + step - 1) / step * step;
}

std::string Bytes(size_t bytes) {
  return absl::StrFormat("%.1f MiB", bytes / 1048576.0);
}

}  // namespace

bool CachingAllocator::BySize::operator()(const MemoryBlock* a,
                                          const MemoryBlock* b) const {
  if (a->bytes != b->bytes) return a->bytes < b->bytes;
  return a->data < b->data;
}

namespace {

bool IsBehind(const MemoryBlock* a, const MemoryBlock* b) {
  return a->data > b->data;
}

}  // namespace

CachingAllocator::CachingAllocator(std::unique_ptr<DeviceMemory> memory,
                                   size_t limit_bytes, StreamId home,
                                   std::shared_ptr<MemoryAccount> account)
    : memory_(std::move(memory)),
      limit_bytes_(limit_bytes),
      home_(home),
      account_(std::move(account)) {
  if (account_ != nullptr) account_->Add(this);
}

CachingAllocator::~CachingAllocator() {
  if (account_ != nullptr) account_->Remove(this);
  std::vector<Idle> all;
  for (auto& [id, record] : segments_) {
    for (MemoryBlock* block = record.first; block != nullptr;) {
      MemoryBlock* next = block->next;
      delete block;
      block = next;
    }
    all.push_back({memory_, account_, record.segment});
  }
  GiveBack(std::move(all));
}

absl::StatusOr<MemoryBlock*> CachingAllocator::Allocate(size_t bytes,
                                                        StreamId stream) {
  bool refused = false;
  absl::StatusOr<MemoryBlock*> block = TryAllocate(bytes, stream, &refused);
  if (block.ok() || !refused) return block;
  // Without the lock: others give back what they keep for reuse.
  account_->ledger()->Reclaim(account_.get(), RoundUp(bytes, kLargeRounding));
  return TryAllocate(bytes, stream, &refused);
}

absl::StatusOr<MemorySegment> CachingAllocator::TakeSegmentOf(
    DeviceMemory* memory, MemoryAccount* account, size_t bytes, bool* refused) {
  if (account != nullptr) {
    if (absl::Status status = account->Reserve(bytes); !status.ok()) {
      *refused = true;
      return status;
    }
  }
  absl::StatusOr<MemorySegment> segment = memory->AllocateSegment(bytes);
  if (account == nullptr) return segment;
  if (!segment.ok()) {
    account->Return(bytes);
    return segment;
  }
  absl::Status status;
  if (segment->bytes > bytes) {
    // The device rounds up: what it took is what counts.
    status = account->Reserve(segment->bytes - bytes);
    if (status.ok()) bytes = segment->bytes;
  }
  if (status.ok() && segment->fd >= 0) {
    status = TakeDescriptors(account->user(), 1);
  }
  if (status.ok()) return segment;
  memory->FreeSegment(*segment);
  account->Return(bytes);
  *refused = true;
  return status;
}

absl::StatusOr<MemorySegment> CachingAllocator::TakeSegment(size_t bytes,
                                                            bool* refused) {
  Aside* const aside = NoWait::aside();
  if (aside == nullptr || !memory_->any_thread()) {
    const NoWait lifted(nullptr);
    return TakeSegmentOf(memory_.get(), account_.get(), bytes, refused);
  }
  // Gigabytes take seconds: others are answered meanwhile.
  absl::StatusOr<MemorySegment> segment = absl::InternalError("not taken");
  const auto take = [&] {
    aside->Run([&] {
      segment = TakeSegmentOf(memory_.get(), account_.get(), bytes, refused);
    });
  };
  {
    const HeapMeter::Elsewhere elsewhere;  // the other thread's heap
    take();
    if (!segment.ok()) {
      // What was given back may be on its way still.
      aside->Finish();
      *refused = false;
      take();
    }
    if (segment.ok()) return segment;
  }
  return absl::Status(segment.status().code(), segment.status().message());
}

void CachingAllocator::GiveBack(std::vector<Idle> idle) {
  Aside* const aside = NoWait::aside();
  for (Idle& one : idle) {
    auto give = [one] {
      one.memory->FreeSegment(one.segment);
      if (one.account == nullptr) return;
      one.account->Return(one.segment.bytes);
      if (one.segment.fd >= 0) DescriptorShares().Return(one.account->user());
    };
    if (aside != nullptr && one.memory->any_thread()) {
      aside->Post(std::move(give));
    } else {
      const NoWait lifted(nullptr);
      give();
    }
  }
}

absl::StatusOr<MemoryBlock*> CachingAllocator::TryAllocate(size_t bytes,
                                                           StreamId stream,
                                                           bool* refused) {
  Lock lock(mutex_);
  constexpr size_t kLargest = size_t{1} << 48;
  if (bytes > kLargest) {
    return OutOfMemory(bytes, absl::ResourceExhaustedError("too large"));
  }
  const size_t rounded = RoundUp(std::max<size_t>(bytes, 1), kRounding);
  MemoryBlock* block = nullptr;
  const size_t bin = rounded / kRounding - 1;
  if (stream == home_ && bin < kBins && !bins_[bin].empty()) {
    std::pop_heap(bins_[bin].begin(), bins_[bin].end(), &IsBehind);
    block = bins_[bin].back();
    bins_[bin].pop_back();
    block->binned = false;
    binned_bytes_ -= block->bytes;
  } else {
    block = TakeFromPool(rounded, stream);
    if (block == nullptr) {
      absl::StatusOr<MemoryBlock*> grown =
          Grow(rounded, stream, refused, &lock);
      if (!grown.ok()) return OutOfMemory(bytes, grown.status());
      block = *grown;
    }
    block = Split(block, rounded);
  }
  block->in_use = true;
  block->requested = bytes;
  in_use_ += block->bytes;
  peak_in_use_ = std::max(peak_in_use_, in_use_);
  ++allocations_;
  return block;
}

// Best fit among the free blocks of the stream; null if none is large enough.
MemoryBlock* CachingAllocator::TakeFromPool(size_t rounded, StreamId stream) {
  if (!deferred_.empty()) CollectDeferred(/*wait=*/false);
  const bool small = rounded <= kSmallLimit;
  const auto found = pools_.find({stream, small});
  if (found == pools_.end()) return nullptr;
  Pool& pool = found->second;
  MemoryBlock key;
  key.bytes = rounded;
  key.data = nullptr;
  const auto it = pool.lower_bound(&key);
  if (it == pool.end()) return nullptr;
  MemoryBlock* block = *it;
  pool.erase(it);
  return block;
}

// Counted before it is there, so that no two take the same room.
absl::StatusOr<MemorySegment> CachingAllocator::TakeWithin(size_t bytes,
                                                           bool* refused,
                                                           Lock* lock) {
  segment_bytes_ += bytes;
  lock->unlock();
  absl::StatusOr<MemorySegment> segment = TakeSegment(bytes, refused);
  lock->lock();
  segment_bytes_ -= bytes;
  return segment;
}

// A new segment, as one free block. When the limit or the device refuses,
// idle segments are given back and the call is tried again.
absl::StatusOr<MemoryBlock*> CachingAllocator::Grow(size_t rounded,
                                                    StreamId stream,
                                                    bool* refused, Lock* lock) {
  size_t bytes = rounded <= kSmallLimit   ? kSmallSegment
                 : rounded < kMediumLimit ? kMediumSegment
                                          : RoundUp(rounded, kLargeRounding);
  auto fits = [&] {
    return limit_bytes_ == 0 || segment_bytes_ + bytes <= limit_bytes_;
  };
  if (binned_bytes_ >= kBinnedBeforeGrowing) {
    EmptyBins();
    if (MemoryBlock* block = TakeFromPool(rounded, stream)) return block;
  }
  absl::StatusOr<MemorySegment> segment =
      absl::ResourceExhaustedError("the session's limit is reached");
  if (fits()) segment = TakeWithin(bytes, refused, lock);
  if (!segment.ok()) {
    EmptyBins();
    // Coalescing may have produced a block that is large enough.
    if (MemoryBlock* block = TakeFromPool(rounded, stream)) return block;
    CollectDeferred(/*wait=*/true);
    if (MemoryBlock* block = TakeFromPool(rounded, stream)) return block;
    FreeIdleSegments(lock);
    // Others may have given back, meanwhile, what is large enough.
    if (MemoryBlock* block = TakeFromPool(rounded, stream)) return block;
    // Under pressure take exactly what is needed, not a comfortable segment.
    if (!fits() || *refused) bytes = RoundUp(rounded, kRounding * 8);
    if (!fits()) return segment.status();
    segment = TakeWithin(bytes, refused, lock);
    if (!segment.ok()) return segment.status();
  }
  if (absl::Status clear = memory_->Clear(*segment, stream); !clear.ok()) {
    lock->unlock();
    GiveBack({{memory_, account_, *segment}});
    lock->lock();
    return clear;
  }
  auto* block = new MemoryBlock;
  block->data = segment->base;
  block->bytes = segment->bytes;
  block->segment = segment->id;
  block->stream = stream;
  segment_bytes_ += segment->bytes;
  peak_segment_bytes_ = std::max(peak_segment_bytes_, segment_bytes_);
  segments_[segment->id] = {*segment, block, {}};
  return block;
}

// Cuts `block` to `rounded` bytes; the rest, however small, goes back to the
// pool: it is nobody's memory, and joins the block again when that is freed.
MemoryBlock* CachingAllocator::Split(MemoryBlock* block, size_t rounded) {
  const size_t remainder = block->bytes - rounded;
  if (remainder == 0) return block;
  auto* rest = new MemoryBlock;
  rest->data = static_cast<char*>(block->data) + rounded;
  rest->bytes = remainder;
  rest->segment = block->segment;
  rest->offset = block->offset + rounded;
  rest->stream = block->stream;
  rest->previous = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->previous = rest;
  block->next = rest;
  block->bytes = rounded;
  ReturnToPool(rest);
  return block;
}

bool CachingAllocator::IsSmallSegment(uint64_t id) const {
  return segments_.find(id)->second.segment.bytes <= kSmallSegment;
}

void CachingAllocator::UseOnStream(MemoryBlock* block, StreamId stream) {
  std::lock_guard<RankedMutex> lock(mutex_);
  if (stream == block->stream) return;
  auto& streams = block->other_streams;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
    streams.push_back(stream);
  }
}

void CachingAllocator::Free(MemoryBlock* block) {
  std::lock_guard<RankedMutex> lock(mutex_);
  block->in_use = false;
  in_use_ -= block->bytes;
  if (!block->other_streams.empty()) {
    for (StreamId stream : block->other_streams) {
      const uint64_t point = memory_->RecordPoint(stream);
      if (point != 0) block->points.push_back(point);
    }
    block->other_streams.clear();
    if (!block->points.empty()) {
      deferred_.push_back(block);
      return;
    }
  }
  const size_t bin = block->bytes / kRounding - 1;
  if (block->stream == home_ && bin < kBins) {
    block->binned = true;
    binned_bytes_ += block->bytes;
    bins_[bin].push_back(block);
    std::push_heap(bins_[bin].begin(), bins_[bin].end(), &IsBehind);
  } else {
    ReturnToPool(block);
  }
}

// Merges a free block with free neighbours and files it.
void CachingAllocator::ReturnToPool(MemoryBlock* block) {
  Pool& pool = pools_[{block->stream, IsSmallSegment(block->segment)}];
  auto mergeable = [&](MemoryBlock* other) {
    return other != nullptr && !other->in_use && !other->binned &&
           other->points.empty() && pool.count(other) != 0;
  };
  if (MemoryBlock* next = block->next; mergeable(next)) {
    pool.erase(next);
    block->bytes += next->bytes;
    block->next = next->next;
    if (block->next != nullptr) block->next->previous = block;
    delete next;
  }
  if (MemoryBlock* previous = block->previous; mergeable(previous)) {
    pool.erase(previous);
    previous->bytes += block->bytes;
    previous->next = block->next;
    if (previous->next != nullptr) previous->next->previous = previous;
    delete block;
    block = previous;
  }
  pool.insert(block);
}

void CachingAllocator::EmptyBins() {
  for (auto& bin : bins_) {
    for (MemoryBlock* block : bin) block->binned = false;
    // Unmarked together, filed one by one: a neighbour not yet filed is not in
    // the pool and so not merged; it merges when its own turn comes.
    std::vector<MemoryBlock*> blocks;
    blocks.swap(bin);
    for (MemoryBlock* block : blocks) ReturnToPool(block);
  }
  binned_bytes_ = 0;
}

// Files freed blocks whose foreign streams have passed.
void CachingAllocator::CollectDeferred(bool wait) {
  std::vector<MemoryBlock*> still;
  for (MemoryBlock* block : deferred_) {
    bool passed = true;
    for (uint64_t point : block->points) {
      if (wait) memory_->WaitPoint(point);
      passed = passed && (wait || memory_->PointPassed(point));
    }
    if (passed) {
      block->points.clear();
      ReturnToPool(block);
    } else {
      still.push_back(block);
    }
  }
  deferred_ = std::move(still);
}

std::vector<CachingAllocator::Idle> CachingAllocator::DetachIdle() {
  std::vector<Idle> idle_segments;
  for (auto it = segments_.begin(); it != segments_.end();) {
    MemoryBlock* block = it->second.first;
    const MemorySegment& segment = it->second.segment;
    const bool idle = block->bytes == segment.bytes && !block->in_use &&
                      !block->binned && block->points.empty() &&
                      it->second.handle.empty();
    if (!idle) {
      ++it;
      continue;
    }
    pools_[{block->stream, IsSmallSegment(segment.id)}].erase(block);
    delete block;
    segment_bytes_ -= segment.bytes;
    idle_segments.push_back({memory_, account_, segment});
    it = segments_.erase(it);
  }
  return idle_segments;
}

size_t CachingAllocator::FreeIdleSegments(Lock* lock) {
  std::vector<Idle> idle = DetachIdle();
  size_t freed = 0;
  for (const Idle& one : idle) freed += one.segment.bytes;
  lock->unlock();
  GiveBack(std::move(idle));
  lock->lock();
  return freed;
}

size_t CachingAllocator::ReleaseCached() {
  Lock lock(mutex_);
  EmptyBins();
  CollectDeferred(/*wait=*/true);
  return FreeIdleSegments(&lock);
}

std::vector<CachingAllocator::Idle> CachingAllocator::TakeIdle() {
  Lock lock(mutex_);
  EmptyBins();
  CollectDeferred(/*wait=*/true);
  return DetachIdle();
}

absl::StatusOr<MemorySegment> CachingAllocator::FindSegment(uint64_t id) const {
  std::lock_guard<RankedMutex> lock(mutex_);
  const auto it = segments_.find(id);
  if (it == segments_.end()) {
    return absl::NotFoundError(absl::StrCat("no memory segment ", id));
  }
  return it->second.segment;
}

absl::StatusOr<std::string> CachingAllocator::Export(uint64_t segment) {
  std::lock_guard<RankedMutex> lock(mutex_);
  const auto it = segments_.find(segment);
  if (it == segments_.end()) {
    return absl::NotFoundError(absl::StrCat("no memory segment ", segment));
  }
  if (it->second.handle.empty()) {
    absl::StatusOr<std::string> handle = memory_->Export(it->second.segment);
    if (!handle.ok()) return handle;
    it->second.handle = *std::move(handle);
  }
  return it->second.handle;
}

void CachingAllocator::ResetPeak() {
  std::lock_guard<RankedMutex> lock(mutex_);
  peak_in_use_ = in_use_;
  peak_segment_bytes_ = segment_bytes_;
}

MemoryStats CachingAllocator::stats() const {
  std::lock_guard<RankedMutex> lock(mutex_);
  MemoryStats stats;
  stats.in_use = in_use_;
  stats.cached = segment_bytes_ - in_use_;
  stats.peak_in_use = peak_in_use_;
  stats.peak_held = peak_segment_bytes_;
  stats.segments = segments_.size();
  stats.allocations = allocations_;
  return stats;
}

std::vector<SegmentListing> CachingAllocator::List() const {
  std::lock_guard<RankedMutex> lock(mutex_);
  std::vector<SegmentListing> all;
  all.reserve(segments_.size());
  for (const auto& [id, record] : segments_) {
    SegmentListing& segment = all.emplace_back();
    segment.id = id;
    segment.bytes = record.segment.bytes;
    segment.small = IsSmallSegment(id);
    const MemoryBlock* block = record.first;
    for (; block != nullptr; block = block->next) {
      segment.blocks.push_back({block->bytes,
                                block->in_use ? block->requested : 0,
                                block->in_use, !block->points.empty()});
    }
  }
  return all;
}

absl::Status CachingAllocator::OutOfMemory(size_t asked,
                                           const absl::Status& cause) const {
  return absl::ResourceExhaustedError(absl::StrCat(
      "out of memory. Got asked=", Bytes(asked), ", in use=", Bytes(in_use_),
      ", cached=", Bytes(segment_bytes_ - in_use_), ", session limit=",
      limit_bytes_ == 0 ? "none" : Bytes(limit_bytes_), " (", cause.message(),
      "). Free tensors, or have the limit raised: holdfastd "
      "--memory_limit, holdfast limits"));
}

}  // namespace holdfast
