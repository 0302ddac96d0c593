// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Specs of tensors, which need nothing of the op table.
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/convert.h"
#include "proto/convert_parts.h"

namespace holdfast {

void SpecToProto(const TensorSpec& spec, wire::TensorSpec* message) {
  message->Clear();
  message->set_dtype(static_cast<wire::DType>(spec.dtype));
  message->mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
  if (spec.strides != ContiguousStrides(spec.shape)) {
    message->mutable_strides()->Add(spec.strides.begin(), spec.strides.end());
  }
  message->set_offset(spec.offset);
  message->set_device(spec.device);
}

absl::StatusOr<TensorSpec> SpecFromProto(const wire::TensorSpec& message) {
  absl::StatusOr<DType> dtype = DTypeFromProto(message.dtype());
  if (!dtype.ok()) return dtype.status();
  absl::StatusOr<Dims> shape = DimsFromProto(message.shape(), kMaxRank);
  if (!shape.ok()) return shape.status();
  absl::StatusOr<Dims> strides = DimsFromProto(message.strides(), kMaxRank);
  if (!strides.ok()) return strides.status();
  TensorSpec spec;
  spec.dtype = *dtype;
  spec.shape = *std::move(shape);
  spec.offset = message.offset();
  if (message.device() >= kMaxDevices) {
    return absl::InvalidArgumentError(
        absl::StrCat("a device's number must be below ", kMaxDevices, ". Got ",
                     message.device(), "."));
  }
  spec.device = static_cast<int8_t>(message.device());
  if (absl::Status s = CheckViewShape(spec.dtype, spec.shape); !s.ok()) {
    return s;
  }
  spec.strides = message.strides().empty() ? ContiguousStrides(spec.shape)
                                           : *std::move(strides);
  for (int64_t stride : spec.strides) {
    // CheckFits lets the strides of size-1 dimensions pass, but kernels may
    // multiply those too.
    if (stride > kMaxTensorBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a stride must be at most ", kMaxTensorBytes, ". Got ", stride, "."));
    }
  }
  if (absl::Status s = CheckFits(spec, kMaxTensorBytes); !s.ok()) return s;
  return spec;
}

}  // namespace holdfast
