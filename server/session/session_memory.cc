// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Session: what it tells of its memory, on each of the daemon's devices.
#include <algorithm>
#include <memory>
#include <utility>

#include "server/session/session.h"

namespace holdfast {
namespace {

v1::SegmentStats::BlockState StateOf(const SegmentListing::Block& block) {
  if (block.in_use) return v1::SegmentStats::IN_USE;
  return block.awaited ? v1::SegmentStats::AWAITED : v1::SegmentStats::FREE;
}

void Tell(const SegmentListing& segment, int device, v1::SegmentStats* told) {
  told->set_device(device);
  told->set_id(segment.id);
  told->set_bytes(segment.bytes);
  told->set_small(segment.small);
  for (const SegmentListing::Block& block : segment.blocks) {
    told->add_block_bytes(block.bytes);
    told->add_block_requested(block.requested);
    told->add_block_states(StateOf(block));
  }
}

void Tell(const MemoryStats& memory, int device, v1::DeviceMemory* told) {
  told->set_device(device);
  told->set_bytes_in_use(memory.in_use);
  told->set_bytes_cached(memory.cached);
  told->set_peak_bytes_in_use(memory.peak_in_use);
  told->set_peak_bytes_held(memory.peak_held);
  told->set_allocations(memory.allocations);
  told->set_segments(memory.segments);
}

}  // namespace

void Session::TellMemory(v1::SessionStats* stats) const {
  MemoryStats sum = executor_->memory().stats();
  const auto further = executor_->further_memory();
  if (!options_.further_devices.empty()) Tell(sum, 0, stats->add_devices());
  for (const auto& [device, allocator] : further) {
    const MemoryStats one = allocator->stats();
    Tell(one, device, stats->add_devices());
    sum.in_use += one.in_use;
    sum.cached += one.cached;
    sum.peak_in_use += one.peak_in_use;
    sum.peak_held += one.peak_held;
    sum.allocations += one.allocations;
    sum.segments += one.segments;
  }
  stats->set_heap_bytes(
      static_cast<uint64_t>(std::max<int64_t>(executor_->heap_bytes(), 0)));
  stats->set_bytes_in_use(sum.in_use);
  stats->set_bytes_cached(sum.cached);
  stats->set_peak_bytes_in_use(sum.peak_in_use);
  stats->set_peak_bytes_held(sum.peak_held);
  stats->set_allocations(sum.allocations);
  stats->set_segments(sum.segments);
}

void Session::ListMemory(v1::SessionStats* stats) const {
  for (const SegmentListing& segment : executor_->memory().List()) {
    Tell(segment, 0, stats->add_memory());
  }
  for (const auto& [device, allocator] : executor_->further_memory()) {
    for (const SegmentListing& segment : allocator->List()) {
      Tell(segment, device, stats->add_memory());
    }
  }
}

}  // namespace holdfast
