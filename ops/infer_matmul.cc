// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of matrix products.
#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

absl::Status CheckOperands(const Attrs& attrs, SpecList inputs) {
  const TensorSpec& a = *inputs[0];
  const TensorSpec& b = *inputs[1];
  if (a.dtype != b.dtype) {
    return Invalid(attrs, inputs,
                   "expected m1 and m2 to have the same dtype, but got: ",
                   DTypeName(a.dtype), " != ", DTypeName(b.dtype));
  }
  if (a.dtype == DType::kBool) return NotImplementedFor(attrs, inputs, a.dtype);
  return absl::OkStatus();
}

absl::Status CannotMultiply(const Attrs& attrs, SpecList inputs, int64_t rows,
                            int64_t inner_a, int64_t inner_b, int64_t columns) {
  return Invalid(attrs, inputs, "mat1 and mat2 shapes cannot be multiplied (",
                 rows, "x", inner_a, " and ", inner_b, "x", columns, ")");
}

}  // namespace

HOLDFAST_INFER(InferMatmul) {
  const TensorSpec& a = *inputs[0];
  const TensorSpec& b = *inputs[1];
  if (a.rank() == 0 || b.rank() == 0) {
    return Invalid(attrs, inputs,
                   "both arguments to matmul need to be at least 1D, but they "
                   "are ",
                   a.rank(), "D and ", b.rank(), "D");
  }
  if (absl::Status s = CheckOperands(attrs, inputs); !s.ok()) return s;
  // A vector is a row on the left and a column on the right, and the dimension
  // of size 1 that this adds goes again afterwards.
  const bool row = a.rank() == 1, column = b.rank() == 1;
  const int64_t m = row ? 1 : a.shape[a.rank() - 2];
  const int64_t k = a.shape[a.rank() - 1];
  const int64_t k2 = column ? b.shape[0] : b.shape[b.rank() - 2];
  const int64_t n = column ? 1 : b.shape[b.rank() - 1];
  if (k != k2) {
    if (row && column) {
      return Invalid(attrs, inputs,
                     "inconsistent tensor size, expected tensor ",
                     TorchShape(a.shape), " and src ", TorchShape(b.shape),
                     " to have the same number of elements, but got ", k,
                     " and ", k2, " elements respectively");
    }
    return CannotMultiply(attrs, inputs, m, k, k2, n);
  }
  if (a.rank() == 2 && b.rank() == 2) {  // the plain case
    AddOutput(out, a.dtype, {m, n});
    return absl::OkStatus();
  }
  const absl::Span<const int64_t> a_shape = a.shape, b_shape = b.shape;
  absl::StatusOr<Dims> shape =
      BroadcastShapes(a_shape.subspan(0, row ? 0 : a.rank() - 2),
                      b_shape.subspan(0, column ? 0 : b.rank() - 2));
  if (!shape.ok()) return WithContext(shape.status(), attrs, inputs);
  if (!row) shape->push_back(m);
  if (!column) shape->push_back(n);
  AddOutput(out, a.dtype, *shape);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferLinear) {
  const TensorSpec& input = *inputs[0];
  const TensorSpec& weight = *inputs[1];
  const TensorSpec* bias = inputs[2];
  if (input.rank() == 0) {
    return Invalid(attrs, inputs, "input must have at least one dimension");
  }
  if (weight.rank() != 2) {
    return Invalid(attrs, inputs, "weight must be a matrix [out, in]");
  }
  absl::Status s = CheckOperands(attrs, inputs);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 0, 2);
  if (!s.ok()) return s;
  const int64_t in = weight.shape[1], features = weight.shape[0];
  if (input.shape.back() != in) {
    int64_t rows = 1;
    for (int i = 0; i + 1 < input.rank(); ++i) rows *= input.shape[i];
    return CannotMultiply(attrs, inputs, rows, input.shape.back(), in,
                          features);
  }
  if (bias != nullptr && (bias->rank() != 1 || bias->shape[0] != features)) {
    return Invalid(attrs, inputs, "bias must have shape [", features, "]");
  }
  Dims shape = input.shape;
  shape.back() = features;
  AddOutput(out, input.dtype, shape);
  return absl::OkStatus();
}

}  // namespace holdfast
