// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the inference rules (infer_<family>.cc) are written with: outputs,
// errors in PyTorch's words, dimension lists, arithmetic that cannot overflow.
// Rules compute sizes from values that a client chose, so plain + and * on them
// are wrong unless a bound is in sight.
// Thread-safety: pure functions.
#ifndef HOLDFAST_OPS_INFER_RULE_H_
#define HOLDFAST_OPS_INFER_RULE_H_

#include <cstdint>
#include <string>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/attrs.h"
#include "ops/infer.h"
#include "ops/tensor_spec.h"

namespace holdfast {

// Adds a contiguous output, or one that is contiguous with `like`'s shape.
void AddOutput(OutputSpecs* out, DType dtype, absl::Span<const int64_t> shape);
void AddOutputLike(OutputSpecs* out, DType dtype, const TensorSpec& like);
// After InferOp, on both sides: gives the results of an elementwise op, which
// InferOp has in row-major order, the order in which its tensors lie, as
// PyTorch does: `x.t() + 1` lies as x.t() does, without gaps. True if a result
// is not in row-major order then. Not for in-place forms.
bool KeepOtherOrder(const Attrs& attrs, SpecList inputs, OutputSpecs* out);
// Whether no dimension has a larger stride than the one before it: then so has
// no result. Nearly always true, and a few words to look at.
inline bool InRowOrder(const TensorSpec& spec) {
  const size_t rank = spec.strides.size();
  if (rank < 2) return true;
  const int64_t* strides = spec.strides.data();
  for (size_t i = 1; i < rank; ++i) {
    if (strides[i - 1] < strides[i]) return false;
  }
  return true;
}
inline bool KeepOrder(const Attrs& attrs, SpecList inputs, OutputSpecs* out) {
  for (const TensorSpec* input : inputs) {
    if (ABSL_PREDICT_FALSE(input != nullptr && !InRowOrder(*input))) {
      return KeepOtherOrder(attrs, inputs, out);
    }
  }
  return false;
}

// Adds a view of input 0.
void AddView(OutputSpecs* out, TensorSpec spec);

// PyTorch's class name of a type ("Float", "Long"), as its messages have it.
absl::string_view TorchTypeName(DType dtype);
// "[2, 3]", as PyTorch prints a shape.
std::string TorchShape(absl::Span<const int64_t> shape);

// InvalidArgument and OutOfRange (Python's IndexError), from message pieces.
template <typename... Pieces>
absl::Status Invalid(const Attrs& attrs, SpecList inputs,
                     const Pieces&... pieces) {
  return OpError(attrs, inputs, absl::StrCat(pieces...));
}
template <typename... Pieces>
absl::Status BadIndex(const Attrs& attrs, SpecList inputs,
                      const Pieces&... pieces) {
  return OpErrorAs(absl::StatusCode::kOutOfRange, attrs, inputs,
                   absl::StrCat(pieces...));
}
// `status` of a prefix-less check (CheckShape, BroadcastShapes, NormalizeDim).
absl::Status WithContext(const absl::Status& status, const Attrs& attrs,
                         SpecList inputs);

// Sum and product; false on overflow.
inline bool SafeAdd(int64_t a, int64_t b, int64_t* sum) {
  return !__builtin_add_overflow(a, b, sum);
}
inline bool SafeMul(int64_t a, int64_t b, int64_t* product) {
  return !__builtin_mul_overflow(a, b, product);
}

// The dimension attribute `name` in [0, max(rank, 1)).
absl::Status DimAttr(const Attrs& attrs, SpecList inputs,
                     absl::string_view name, int rank, int* dim);
// A list of distinct dimensions, as a bit mask over [0, rank).
absl::Status DimMask(const Attrs& attrs, SpecList inputs,
                     absl::Span<const int64_t> dims, int rank, uint64_t* mask);

// "[op] "softmax" not implemented for 'Long'" unless input `slot` is a float.
absl::Status RequireFloat(const Attrs& attrs, SpecList inputs, int slot);
absl::Status NotImplementedFor(const Attrs& attrs, SpecList inputs,
                               DType dtype);
// Absent inputs count as equal.
absl::Status RequireSameDType(const Attrs& attrs, SpecList inputs, int slot_a,
                              int slot_b);

// Input `index` (counted over lists) can be written element by element.
// Expanded dimensions put several elements in one place: writing those would
// depend on the order.
absl::Status RequireWritable(const Attrs& attrs, SpecList inputs, size_t index);

// torch.result_type of a tensor and a number.
DType PromoteWithNumber(DType tensor, const AttrValue& number);
// bool and integers become int64, as in sums.
inline DType SumType(DType dtype) {
  return IsDifferentiable(dtype) ? dtype : DType::kInt64;
}

}  // namespace holdfast

#endif  // HOLDFAST_OPS_INFER_RULE_H_
