// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// PlaceOp: on which device an op runs. Devices are numbered as a program sees
// them: 0 is "cpu", 1 is "cuda:0", 2 is "cuda:1". A daemon with GPUs keeps
// tensors of "cpu" on its first GPU: they are that in name, so that a program
// copies and aliases as it would with PyTorch, and go along with any other
// device's where PyTorch would refuse them. Tensors of two GPUs do not mix.
// Thread-safety: pure functions.
#ifndef HOLDFAST_OPS_PLACE_OP_H_
#define HOLDFAST_OPS_PLACE_OP_H_

#include <string>

#include "absl/status/status.h"
#include "ops/attrs.h"
#include "ops/infer.h"

namespace holdfast {

// Where a device's tensors lie: the daemon's first device, counted from 0, or
// another.
inline int DevicePlace(int device) { return device <= 1 ? 0 : device - 1; }
// "cpu", "cuda:0".
std::string DeviceText(int device);

// The device of an op whose tensors are on different ones.
absl::Status PlaceMixedOp(const Attrs& attrs, SpecList inputs, bool inplace,
                          int* device);

// InvalidArgument where tensors are on different GPUs. What `*device` says need
// not be there.
inline absl::Status PlaceOp(const Attrs& attrs, SpecList inputs, bool inplace,
                            int* device) {
  const TensorSpec* first = nullptr;
  bool mixed = false;
  for (const TensorSpec* input : inputs) {
    if (input == nullptr) continue;
    if (first == nullptr) first = input;
    mixed |= input->device != first->device;
  }
  if (mixed) return PlaceMixedOp(attrs, inputs, inplace, device);
  *device = first == nullptr ? attrs.device() : first->device;
  return absl::OkStatus();
}

}  // namespace holdfast

#endif  // HOLDFAST_OPS_PLACE_OP_H_
