// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of Fourier transforms over a list of dimensions. The last one listed
// is the one that real transforms halve.
#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// Checks the dimensions; `last` is the last one listed.
absl::Status CheckDims(const Attrs& attrs, SpecList inputs, int* last) {
  const TensorSpec& input = *inputs[0];
  const Dims& dims = attrs.Ints("dim");
  uint64_t mask = 0;
  absl::Status s = DimMask(attrs, inputs, dims, input.rank(), &mask);
  if (!s.ok()) return s;
  if (dims.empty() || input.rank() == 0) {
    return Invalid(attrs, inputs, "at least one dimension must be transformed");
  }
  for (int64_t dim : dims) {
    const int d = static_cast<int>(dim < 0 ? dim + input.rank() : dim);
    if (input.shape[d] < 1) {
      return Invalid(attrs, inputs, "Invalid number of data points (",
                     input.shape[d], ") specified");
    }
    *last = d;
  }
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_INFER(InferFftC2c) {
  int last = 0;
  absl::Status s = CheckDims(attrs, inputs, &last);
  if (!s.ok()) return s;
  if (!IsComplex(inputs[0]->dtype)) {
    return NotImplementedFor(attrs, inputs, inputs[0]->dtype);
  }
  AddOutputLike(out, inputs[0]->dtype, *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferFftR2c) {
  const TensorSpec& input = *inputs[0];
  int last = 0;
  absl::Status s = CheckDims(attrs, inputs, &last);
  if (!s.ok()) return s;
  if (input.dtype != DType::kFloat32 && input.dtype != DType::kFloat64) {
    return NotImplementedFor(attrs, inputs, input.dtype);
  }
  Dims shape = input.shape;
  shape[last] = shape[last] / 2 + 1;
  AddOutput(out, PromoteTypes(input.dtype, DType::kComplex64), shape);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferFftC2r) {
  const TensorSpec& input = *inputs[0];
  int last = 0;
  absl::Status s = CheckDims(attrs, inputs, &last);
  if (!s.ok()) return s;
  if (!IsComplex(input.dtype)) {
    return NotImplementedFor(attrs, inputs, input.dtype);
  }
  const int64_t size = attrs.Int("last_size");
  if (size < 1 || size / 2 + 1 != input.shape[last]) {
    return Invalid(attrs, inputs, "Invalid number of data points (", size,
                   ") specified");
  }
  Dims shape = input.shape;
  shape[last] = size;
  AddOutput(out, RealType(input.dtype), shape);
  return absl::OkStatus();
}

}  // namespace holdfast
