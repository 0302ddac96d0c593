// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Between at::Tensor and the daemon's tensors.
// Thread-safety: as PyTorch's tensors: one thread writes a tensor's metadata.
#pragma once

#include <ATen/core/Tensor.h>

#include "api.h"

namespace holdfast_torch {

// The daemon's tensor for `tensor`: the same elements, sizes and strides, with
// its memory. Made at its first use and kept with the tensor. Throws, also for
// a tensor of another device.
HfTensor* HandleOf(const at::Tensor& tensor);

// A tensor of device "holdfast" with a storage of its own, which is that of
// `handle`. Waits where the sizes depend on data.
at::Tensor Wrap(Handle handle);

bool IsOurs(const at::Tensor& tensor);

// One op of the daemon's with one result.
Handle Apply(int op, const HfAttr* attrs, int num_attrs,
             HfTensor* const* inputs, int num_inputs);

}  // namespace holdfast_torch
