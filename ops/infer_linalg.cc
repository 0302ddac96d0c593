// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of linear algebra.
#include <algorithm>

#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// LAPACK counts work space in 32-bit integers, of about 4 n^2 elements.
constexpr int64_t kMaxSide = 20000;
constexpr int64_t kMaxLength = int64_t{1} << 25;

// Input `slot` is a batch of float matrices of a size that LAPACK takes.
absl::Status CheckMatrix(const Attrs& attrs, SpecList inputs, int slot) {
  const TensorSpec& a = *inputs[slot];
  if (a.rank() < 2) {
    return Invalid(attrs, inputs, "The input tensor ",
                   attrs.schema().params[slot].name,
                   " must have at least 2 dimensions.");
  }
  // eig makes complex numbers, of real matrices.
  const bool complex = IsComplex(a.dtype) && !attrs.schema().has(kNoGrad);
  if (!IsFloat(a.dtype) && !complex) {
    return Invalid(attrs, inputs, "Expected a floating point tensor as input. ",
                   "Got ", TorchTypeName(a.dtype));
  }
  const int64_t m = a.shape[a.rank() - 2], n = a.shape[a.rank() - 1];
  if (std::min(m, n) > kMaxSide || std::max(m, n) > kMaxLength) {
    return Invalid(attrs, inputs, "a matrix of ", m, " by ", n,
                   " is too large: the smaller side may have ", kMaxSide,
                   " elements, the larger ", kMaxLength);
  }
  return absl::OkStatus();
}

absl::Status CheckSquare(const Attrs& attrs, SpecList inputs, int slot) {
  absl::Status s = CheckMatrix(attrs, inputs, slot);
  if (!s.ok()) return s;
  const TensorSpec& a = *inputs[slot];
  const int64_t m = a.shape[a.rank() - 2], n = a.shape[a.rank() - 1];
  if (m != n) {
    return Invalid(attrs, inputs, attrs.schema().params[slot].name,
                   " must be batches of square matrices, but they are ", m,
                   " by ", n, " matrices");
  }
  return absl::OkStatus();
}

// `spec`'s batch dimensions, then `tail`.
Dims WithBatch(const TensorSpec& spec, std::initializer_list<int64_t> tail) {
  Dims shape(spec.shape.begin(), spec.shape.end() - 2);
  shape.insert(shape.end(), tail.begin(), tail.end());
  return shape;
}

int64_t Rows(const TensorSpec& a) { return a.shape[a.rank() - 2]; }
int64_t Columns(const TensorSpec& a) { return a.shape[a.rank() - 1]; }

// What systems A X = B (or X A = B) share: types, sizes, the broadcast batch.
absl::Status InferSystem(const Attrs& attrs, SpecList inputs, bool left,
                         OutputSpecs* out) {
  absl::Status s = CheckSquare(attrs, inputs, 0);
  if (s.ok()) s = CheckMatrix(attrs, inputs, 1);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 0, 1);
  if (!s.ok()) return s;
  const TensorSpec& a = *inputs[0];
  const TensorSpec& b = *inputs[1];
  if (Rows(a) != (left ? Rows(b) : Columns(b))) {
    return Invalid(attrs, inputs,
                   "Incompatible shapes of A and B for the equation ",
                   left ? "AX = B" : "XA = B", " (", Rows(a), "x", Columns(a),
                   " and ", Rows(b), "x", Columns(b), ")");
  }
  const absl::Span<const int64_t> a_shape = a.shape, b_shape = b.shape;
  absl::StatusOr<Dims> shape =
      BroadcastShapes(a_shape.first(a.rank() - 2), b_shape.first(b.rank() - 2));
  if (!shape.ok()) return WithContext(shape.status(), attrs, inputs);
  shape->push_back(Rows(b));
  shape->push_back(Columns(b));
  AddOutput(out, a.dtype, *shape);
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_INFER(InferSquareMatrix) {
  absl::Status s = CheckSquare(attrs, inputs, 0);
  if (s.ok()) AddOutputLike(out, inputs[0]->dtype, *inputs[0]);
  return s;
}

HOLDFAST_INFER(InferLuFactor) {
  absl::Status s = CheckMatrix(attrs, inputs, 0);
  if (!s.ok()) return s;
  const TensorSpec& a = *inputs[0];
  AddOutputLike(out, a.dtype, a);
  AddOutput(out, DType::kInt32, WithBatch(a, {std::min(Rows(a), Columns(a))}));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferLuPermutation) {
  const TensorSpec& pivots = *inputs[0];
  if (pivots.rank() < 1 || pivots.dtype != DType::kInt32) {
    return Invalid(attrs, inputs,
                   "pivots must be an int32 tensor of at least 1 dimension");
  }
  const int64_t rows = attrs.Int("rows");
  if (rows < pivots.shape.back()) {
    return Invalid(attrs, inputs, "rows must be at least the ",
                   pivots.shape.back(), " pivots, not ", rows);
  }
  Dims shape = pivots.shape;
  shape.back() = rows;
  AddOutput(out, DType::kInt64, shape);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferSolve) { return InferSystem(attrs, inputs, true, out); }

HOLDFAST_INFER(InferSolveTriangular) {
  return InferSystem(attrs, inputs, attrs.Bool("left"), out);
}

HOLDFAST_INFER(InferQr) {
  absl::Status s = CheckMatrix(attrs, inputs, 0);
  if (!s.ok()) return s;
  const TensorSpec& a = *inputs[0];
  const int64_t m = Rows(a), n = Columns(a);
  const int64_t k = attrs.Bool("complete") ? m : std::min(m, n);
  AddOutput(out, a.dtype, WithBatch(a, {m, k}));
  AddOutput(out, a.dtype, WithBatch(a, {k, n}));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferEigh) {
  absl::Status s = CheckSquare(attrs, inputs, 0);
  if (!s.ok()) return s;
  const TensorSpec& a = *inputs[0];
  AddOutput(out, a.dtype, WithBatch(a, {Rows(a)}));
  AddOutputLike(out, a.dtype, a);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferEigvalsh) {
  absl::Status s = CheckSquare(attrs, inputs, 0);
  if (!s.ok()) return s;
  AddOutput(out, inputs[0]->dtype, WithBatch(*inputs[0], {Rows(*inputs[0])}));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferSvd) {
  absl::Status s = CheckMatrix(attrs, inputs, 0);
  if (!s.ok()) return s;
  const TensorSpec& a = *inputs[0];
  const int64_t m = Rows(a), n = Columns(a), k = std::min(m, n);
  const bool full = attrs.Bool("full_matrices");
  AddOutput(out, a.dtype, WithBatch(a, {m, full ? m : k}));
  AddOutput(out, a.dtype, WithBatch(a, {k}));
  AddOutput(out, a.dtype, WithBatch(a, {full ? n : k, n}));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferSvdvals) {
  absl::Status s = CheckMatrix(attrs, inputs, 0);
  if (!s.ok()) return s;
  const TensorSpec& a = *inputs[0];
  AddOutput(out, a.dtype, WithBatch(a, {std::min(Rows(a), Columns(a))}));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferPinv) {
  absl::Status s = CheckMatrix(attrs, inputs, 0);
  if (!s.ok()) return s;
  const TensorSpec& a = *inputs[0];
  AddOutput(out, a.dtype, WithBatch(a, {Columns(a), Rows(a)}));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferEig) {
  absl::Status s = CheckSquare(attrs, inputs, 0);
  if (!s.ok()) return s;
  const TensorSpec& a = *inputs[0];
  if (a.dtype != DType::kFloat32 && a.dtype != DType::kFloat64) {
    return NotImplementedFor(attrs, inputs, a.dtype);
  }
  const DType dtype = PromoteTypes(a.dtype, DType::kComplex64);
  AddOutput(out, dtype, WithBatch(a, {Rows(a)}));
  if (attrs.Bool("vectors")) {
    AddOutputLike(out, dtype, a);
  } else {
    AddOutput(out, dtype, {0});
  }
  return absl::OkStatus();
}

HOLDFAST_INFER(InferCross) {
  const TensorSpec& a = *inputs[0];
  const TensorSpec& b = *inputs[1];
  absl::Status s = RequireSameDType(attrs, inputs, 0, 1);
  if (!s.ok()) return s;
  if (a.dtype == DType::kBool) return NotImplementedFor(attrs, inputs, a.dtype);
  if (a.rank() != b.rank()) {
    return Invalid(attrs, inputs,
                   "inputs must have the same number of dimensions.");
  }
  int dim = 0;
  s = DimAttr(attrs, inputs, "dim", a.rank(), &dim);
  if (!s.ok()) return s;
  if (a.rank() == 0 || a.shape[dim] != 3 || b.shape[dim] != 3) {
    return Invalid(attrs, inputs, "inputs dimension ", dim,
                   " must have length 3. Got ", a.rank() > 0 ? a.shape[dim] : 1,
                   " and ", b.rank() > 0 ? b.shape[dim] : 1);
  }
  absl::StatusOr<Dims> shape = BroadcastShapes(a.shape, b.shape);
  if (!shape.ok()) return WithContext(shape.status(), attrs, inputs);
  AddOutput(out, a.dtype, *shape);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferCdist) {
  const TensorSpec& a = *inputs[0];
  const TensorSpec& b = *inputs[1];
  if (a.rank() < 2 || b.rank() < 2) {
    return Invalid(attrs, inputs, "cdist only supports at least 2D tensors, ",
                   a.rank() < 2 ? "X1" : "X2",
                   " got: ", std::min(a.rank(), b.rank()), "D");
  }
  absl::Status s = RequireFloat(attrs, inputs, 0);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 0, 1);
  if (!s.ok()) return s;
  if (Columns(a) != Columns(b)) {
    return Invalid(attrs, inputs,
                   "X1 and X2 must have the same number of columns. X1: ",
                   Columns(a), " X2: ", Columns(b));
  }
  const double p = attrs.Float("p");
  if (!(p >= 0)) {
    return Invalid(attrs, inputs,
                   "cdist only supports non-negative p values. Got ", p);
  }
  const absl::Span<const int64_t> a_shape = a.shape, b_shape = b.shape;
  absl::StatusOr<Dims> shape =
      BroadcastShapes(a_shape.first(a.rank() - 2), b_shape.first(b.rank() - 2));
  if (!shape.ok()) return WithContext(shape.status(), attrs, inputs);
  shape->push_back(Rows(a));
  shape->push_back(Rows(b));
  AddOutput(out, a.dtype, *shape);
  return absl::OkStatus();
}

}  // namespace holdfast
