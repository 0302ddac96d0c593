// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DeviceArray: memory of a GPU as this process and the libraries in it see it.
#ifndef HOLDFAST_CLIENT_DEVICE_ARRAY_H_
#define HOLDFAST_CLIENT_DEVICE_ARRAY_H_

#include <memory>

#include "ops/tensor_spec.h"

namespace holdfast::client {

struct DeviceArray {
  // spec.offset and spec.strides count elements from here on. Not for host
  // code, unless the device is plain memory.
  void* data = nullptr;
  TensorSpec spec;
  int ordinal = 0;  // the GPU's number in this process
  // Keeps the memory; may be dropped on any thread.
  std::shared_ptr<void> owner;
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_DEVICE_ARRAY_H_
