// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Host memory that Tensor.pin_memory() gives out. Over shared memory and over
// gRPC an upload copies from any address, so that nothing is locked: pages are
// whole and known, which is what PyTorch asks of pinned memory.
// Thread-safety: everything from any thread.
#pragma once

#include <c10/core/Allocator.h>

namespace holdfast_torch {

c10::Allocator* PinnedAllocator();
// Whether `address` lies in memory of that allocator.
bool IsPinned(const void* address);

}  // namespace holdfast_torch
