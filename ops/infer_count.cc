// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of counting: bins given by edges or by the values themselves, and the
// values that are different.
#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {

HOLDFAST_INFER(InferHistogram) {
  const TensorSpec& edges = *inputs[1];
  absl::Status s = RequireFloat(attrs, inputs, 0);
  if (!s.ok()) return s;
  if (s = RequireSameDType(attrs, inputs, 0, 1); !s.ok()) return s;
  if (edges.rank() != 1 || edges.shape[0] < 2) {
    return Invalid(attrs, inputs,
                   "histogram(): bin edges must be a 1-D tensor of at least "
                   "two elements");
  }
  if (inputs[2] != nullptr) {
    if (s = RequireSameDType(attrs, inputs, 0, 2); !s.ok()) return s;
    if (inputs[2]->shape != inputs[0]->shape) {
      return Invalid(attrs, inputs,
                     "histogram(): weight must have the shape of input");
    }
  }
  AddOutput(out, inputs[0]->dtype, {edges.shape[0] - 1});
  return absl::OkStatus();
}

HOLDFAST_INFER(InferBincount) {
  const TensorSpec& input = *inputs[0];
  if (input.rank() != 1 || !IsIntegral(input.dtype) ||
      input.dtype == DType::kBool) {
    return Invalid(attrs, inputs,
                   "bincount only supports 1-d non-negative integral inputs.");
  }
  if (attrs.Int("minlength") < 0) {
    return Invalid(attrs, inputs, "minlength should be >= 0");
  }
  DType dtype = DType::kInt64;
  if (inputs[1] != nullptr) {
    if (inputs[1]->shape != input.shape) {
      return Invalid(attrs, inputs,
                     "weights should be 1-d and have the same length as input");
    }
    dtype =
        inputs[1]->dtype == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64;
  }
  AddOutput(out, dtype, {kUnknownSize});
  return absl::OkStatus();
}

HOLDFAST_INFER(InferUnique) {
  const TensorSpec& input = *inputs[0];
  if (input.rank() != 1 || IsComplex(input.dtype)) {
    return Invalid(attrs, inputs, "input must be a vector of real numbers");
  }
  AddOutput(out, input.dtype, {kUnknownSize});
  AddOutput(out, DType::kInt64, {attrs.Bool("inverse") ? input.shape[0] : 0});
  AddOutput(out, DType::kInt64, {attrs.Bool("counts") ? kUnknownSize : 0});
  return absl::OkStatus();
}

HOLDFAST_INFER(InferLexsort) {
  if (inputs[0]->rank() != 2) {
    return Invalid(attrs, inputs, "input must be a matrix");
  }
  AddOutput(out, DType::kInt64, {inputs[0]->shape[0]});
  return absl::OkStatus();
}

}  // namespace holdfast
