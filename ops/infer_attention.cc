// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of attention.
#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// Sums of 16-bit numbers are kept in float32.
DType LogSumExpType(DType dtype) {
  return dtype == DType::kFloat64 ? dtype : DType::kFloat32;
}

absl::Span<const int64_t> Lead(const TensorSpec& spec) {
  return absl::MakeConstSpan(spec.shape).first(spec.rank() - 2);
}

// Query, key and value at `first`, `first` + 1 and `first` + 2.
absl::Status CheckAttention(const Attrs& attrs, SpecList inputs, int first) {
  const TensorSpec& query = *inputs[first];
  const TensorSpec& key = *inputs[first + 1];
  const TensorSpec& value = *inputs[first + 2];
  for (int i = first; i < first + 3; ++i) {
    if (absl::Status s = RequireFloat(attrs, inputs, i); !s.ok()) return s;
  }
  if (query.dtype != key.dtype || query.dtype != value.dtype) {
    return Invalid(attrs, inputs,
                   "Expected query, key, and value to have the same dtype, but "
                   "got query.dtype: ",
                   DTypeName(query.dtype), " key.dtype: ", DTypeName(key.dtype),
                   " and value.dtype: ", DTypeName(value.dtype), " instead.");
  }
  const int rank = query.rank();
  if (rank < 2 || key.rank() != rank || value.rank() != rank ||
      Lead(query) != Lead(key) || Lead(query) != Lead(value)) {
    return Invalid(attrs, inputs,
                   "query [..., L, E], key [..., S, E] and value [..., S, V] "
                   "must have equal leading dimensions");
  }
  if (query.shape[rank - 1] != key.shape[rank - 1]) {
    return Invalid(attrs, inputs,
                   "query and key must have one last dimension, but got ",
                   query.shape[rank - 1], " and ", key.shape[rank - 1]);
  }
  if (key.shape[rank - 2] != value.shape[rank - 2]) {
    return Invalid(attrs, inputs,
                   "key and value must have one length, but got ",
                   key.shape[rank - 2], " and ", value.shape[rank - 2]);
  }
  return absl::OkStatus();
}

// [..., L] and [..., L, V] of query [..., L, E].
Dims RowShape(const TensorSpec& query) {
  return Dims(query.shape.begin(), query.shape.end() - 1);
}
Dims OutputShape(const TensorSpec& query, const TensorSpec& value) {
  Dims shape = RowShape(query);
  shape.push_back(value.shape.back());
  return shape;
}

}  // namespace

HOLDFAST_INFER(InferAttention) {
  absl::Status s = CheckAttention(attrs, inputs, 0);
  if (!s.ok()) return s;
  const TensorSpec& query = *inputs[0];
  const Dims shape = OutputShape(query, *inputs[2]);
  if (s = CheckShape(query.dtype, shape); !s.ok()) {
    return WithContext(s, attrs, inputs);
  }
  AddOutput(out, query.dtype, shape);
  AddOutput(out, LogSumExpType(query.dtype), RowShape(query));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferAttentionBackward) {
  absl::Status s = CheckAttention(attrs, inputs, 1);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 0, 1);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 1, 4);
  if (!s.ok()) return s;
  const TensorSpec& query = *inputs[1];
  const Dims shape = OutputShape(query, *inputs[3]);
  for (int slot : {0, 4}) {
    if (inputs[slot]->shape != shape) {
      return Invalid(attrs, inputs, attrs.schema().params[slot].name,
                     " must be ", TorchShape(shape));
    }
  }
  if (inputs[5]->shape != RowShape(query) ||
      inputs[5]->dtype != LogSumExpType(query.dtype)) {
    return Invalid(attrs, inputs, "logsumexp must be ",
                   DTypeName(LogSumExpType(query.dtype)), " ",
                   TorchShape(RowShape(query)));
  }
  for (int slot : {1, 2, 3}) {
    AddOutput(out, inputs[slot]->dtype, inputs[slot]->shape);
  }
  return absl::OkStatus();
}

}  // namespace holdfast
