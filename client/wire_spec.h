// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the daemon tells of a tensor, unchecked. Thread-safety: pure function.
#ifndef HOLDFAST_CLIENT_WIRE_SPEC_H_
#define HOLDFAST_CLIENT_WIRE_SPEC_H_

#include "ops/tensor_spec.h"
#include "proto/holdfast.pb.h"

namespace holdfast::client {

inline TensorSpec SpecFromWire(const ::holdfast::v1::TensorSpec& message) {
  TensorSpec spec;
  spec.dtype = static_cast<DType>(message.dtype());
  spec.shape.assign(message.shape().begin(), message.shape().end());
  if (message.strides().empty()) {
    spec.strides = ContiguousStrides(spec.shape);
  } else {
    spec.strides.assign(message.strides().begin(), message.strides().end());
  }
  spec.offset = message.offset();
  return spec;
}

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_WIRE_SPEC_H_
