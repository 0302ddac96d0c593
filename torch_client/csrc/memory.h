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

#include <mutex>

#include "api.h"

namespace holdfast_torch {

// The context of a storage's DataPtr. The tensor that owns the elements comes
// with the first op that needs it: an empty storage costs no message.
// Thread-safety: `mutex` guards what changes.
struct DeviceMemory {
  uint64_t number = 0;  // never used again: tells what a cached handle is of
  size_t bytes = 0;     // of the address range
  std::mutex mutex;
  // Null before the first use. Every view of the storage is made from it.
  Handle whole;
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // of `whole`
};

c10::Allocator* DeviceAllocator();
// A DataPtr for `bytes` bytes whose elements are those of `whole`, if any.
c10::DataPtr NewDeviceMemory(size_t bytes, Handle whole, c10::ScalarType dtype);
// The context, null for a storage without an address.
DeviceMemory* MemoryOf(const c10::StorageImpl& storage);

}  // namespace holdfast_torch
