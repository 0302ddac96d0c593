// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Between at::Tensor and the daemon's tensors.
// Thread-safety: as PyTorch's tensors: one thread writes a tensor's metadata.
#pragma once

#include <ATen/core/Tensor.h>

#include "api.h"
#include "memory.h"

namespace holdfast_torch {

// The daemon's tensor for `tensor`: the same elements, sizes and strides, with
// its memory. Made at its first use; lives as long as `tensor` is not changed.
// Throws, also for a tensor of another device.
HfTensor* HandleOf(const at::Tensor& tensor);

// A tensor of device "holdfast" with a storage of its own, which is that of
// `handle`. Waits where the sizes depend on data.
at::Tensor Wrap(Handle handle);

inline bool IsOurs(const at::Tensor& tensor) {
  return tensor.device().type() == c10::DeviceType::PrivateUse1;
}

// The storage's elements are those of `elements` if nothing was written there.
bool TakeWhole(DeviceMemory* memory, const Handle& elements);
// Notes that every element of `tensor`'s storage is `value` from now on, if
// nothing was written there and `tensor` is all of it. No message. Zeros and
// ones only.
bool FillLater(const at::Tensor& tensor, const at::Scalar& value);

// One op of the daemon's with one result.
Handle Apply(int op, const HfAttr* attrs, int num_attrs,
             HfTensor* const* inputs, int num_inputs);

}  // namespace holdfast_torch
