// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a storage of device "holdfast" points at. Its elements lie in the
// daemon; its address is unique among living storages, as PyTorch compares
// addresses, and nothing can be read there: a CPU kernel that tries faults at
// once.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <array>
#include <atomic>
#include <mutex>

#include "api.h"

namespace holdfast_torch {

// A tensor of the daemon's and what it shows of its storage. The spec's arrays
// live as long as the handle.
struct ShownHandle {
  Handle handle;
  HfSpec spec{};
};

// A tensor's metadata, as the daemon's spec has it.
struct Shape {
  c10::IntArrayRef sizes;
  c10::IntArrayRef strides;
  int64_t offset;
  int dtype;  // ops/dtype.h
};

bool Shows(const HfSpec& spec, const Shape& shape);

// The context of a storage's DataPtr. The tensor that owns the elements comes
// with the first op that needs it: an empty storage costs no message.
// Thread-safety: `mutex` guards what changes, but `made`, which is set once.
struct DeviceMemory {
  uint64_t number = 0;  // never used again: tells what a cached handle is of
  size_t bytes = 0;     // of the address range
  std::mutex mutex;
  // Set when `whole` is, which then stays: it may be read without the lock.
  std::atomic<bool> made{false};
  ShownHandle whole;  // every view of the storage is made from it
  // What every element holds while nothing is made: kind HF_NONE: anything.
  HfAttr fill{};
  int fill_dtype = 0;
  // Views that were asked for last: a step asks for the same ones again.
  std::array<ShownHandle, 4> views;
  unsigned next_view = 0;
};

c10::Allocator* DeviceAllocator();
// A DataPtr for `bytes` bytes whose elements are those of `whole`, if any.
c10::DataPtr NewDeviceMemory(size_t bytes, ShownHandle whole);
// The context, null for a storage without an address.
DeviceMemory* MemoryOf(const c10::StorageImpl& storage);

}  // namespace holdfast_torch
