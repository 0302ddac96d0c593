// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of joining and indexing. Values of indices are the kernels' to check;
// here is everything that lets them trust the shapes.
#include <algorithm>

#include "ops/infer_rule.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// PyTorch treats a rank-0 tensor as one of shape [1] where an op indexes it.
int IndexedRank(const TensorSpec& spec) { return std::max(spec.rank(), 1); }
int64_t SizeAt(const TensorSpec& spec, int dim) {
  return spec.rank() == 0 ? 1 : spec.shape[dim];
}

// Of an empty index no element is looked at: its type and rank are free.
absl::Status RequireIndex(const Attrs& attrs, SpecList inputs, int slot) {
  const TensorSpec& index = *inputs[slot];
  if (index.dtype == DType::kInt64 || index.dtype == DType::kInt32 ||
      index.numel() == 0) {
    return absl::OkStatus();
  }
  return Invalid(attrs, inputs, attrs.schema().name,
                 "(): Expected dtype int32 or int64 for index");
}

// index_select's and index_add's index: a list of positions along `dim`.
absl::Status RequireVectorIndex(const Attrs& attrs, SpecList inputs) {
  const TensorSpec& index = *inputs[1];
  if (index.rank() > 1) {
    return BadIndex(attrs, inputs, attrs.schema().name,
                    "(): Index is supposed to be a vector");
  }
  if (index.dtype != DType::kInt64 && index.dtype != DType::kInt32) {
    return Invalid(attrs, inputs, attrs.schema().name,
                   "(): Expected dtype int32 or int64 for index");
  }
  return absl::OkStatus();
}

// Every size of `small` fits in `large`, `dim` excepted (-1: none is).
bool FitsApartFrom(const TensorSpec& small, const TensorSpec& large, int dim) {
  for (int i = 0; i < IndexedRank(small); ++i) {
    if (i != dim && SizeAt(small, i) > SizeAt(large, i)) return false;
  }
  return true;
}

}  // namespace

HOLDFAST_INFER(InferCat) {
  if (inputs.empty()) {
    return Invalid(attrs, inputs, "expected a non-empty list of Tensors");
  }
  // Empty 1-D tensors join with anything, from times when shape [0] was the
  // only empty one.
  auto is_legacy = [](const TensorSpec& t) {
    return t.rank() == 1 && t.shape[0] == 0;
  };
  const TensorSpec* first = nullptr;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]->rank() == 0) {
      return Invalid(attrs, inputs, "zero-dimensional tensor (at position ", i,
                     ") cannot be concatenated");
    }
    if (first == nullptr && !is_legacy(*inputs[i])) first = inputs[i];
  }
  if (first == nullptr) first = inputs[0];
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", first->rank(), &dim);
  if (!s.ok()) return s;
  Dims shape = first->shape;
  int64_t total = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec& tensor = *inputs[i];
    if (is_legacy(tensor)) continue;
    if (tensor.rank() != first->rank()) {
      return Invalid(attrs, inputs,
                     "Tensors must have same number of dimensions: got ",
                     first->rank(), " and ", tensor.rank());
    }
    for (int d = 0; d < tensor.rank(); ++d) {
      if (d == dim || tensor.shape[d] == shape[d]) continue;
      return Invalid(attrs, inputs,
                     "Sizes of tensors must match except in dimension ", dim,
                     ". Expected size ", shape[d], " but got size ",
                     tensor.shape[d], " for tensor number ", i, " in the list");
    }
    if (!SafeAdd(total, tensor.shape[dim], &total)) {
      return Invalid(attrs, inputs, "the joined size overflows");
    }
  }
  shape[dim] = total;
  AddOutput(out, ResultType(attrs, inputs), shape);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferGather) {
  const TensorSpec& input = *inputs[0];
  const TensorSpec& index = *inputs[1];
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", input.rank(), &dim);
  if (s.ok()) s = RequireIndex(attrs, inputs, 1);
  if (!s.ok()) return s;
  // An empty index reads nothing, whatever its other sizes.
  const bool empty = index.numel() == 0;
  if (!empty && IndexedRank(input) != IndexedRank(index)) {
    return Invalid(attrs, inputs,
                   "Index tensor must have the same number of dimensions as "
                   "input tensor");
  }
  if (!empty && !FitsApartFrom(index, input, dim)) {
    return Invalid(attrs, inputs, "Size does not match: expected index ",
                   TorchShape(index.shape), " to be smaller than self ",
                   TorchShape(input.shape), " apart from dimension ", dim);
  }
  AddOutputLike(out, input.dtype, index);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferScatter) {
  const TensorSpec& input = *inputs[0];
  const TensorSpec& index = *inputs[1];
  const TensorSpec* src = inputs[2];  // null: one number for every place
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", input.rank(), &dim);
  if (s.ok()) s = RequireIndex(attrs, inputs, 1);
  if (!s.ok()) return s;
  if (src != nullptr && src->dtype != input.dtype) {
    return Invalid(attrs, inputs, attrs.schema().name,
                   "(): Expected self.dtype to be equal to src.dtype");
  }
  // An empty index writes nothing, whatever its other sizes.
  const bool empty = index.numel() == 0;
  if (!empty && IndexedRank(index) != IndexedRank(input)) {
    return Invalid(attrs, inputs,
                   "Index tensor must have the same number of dimensions as "
                   "self tensor");
  }
  if (!empty && src != nullptr && IndexedRank(*src) != IndexedRank(index)) {
    return Invalid(attrs, inputs,
                   "Index tensor must have the same number of dimensions as "
                   "src tensor");
  }
  if (!empty && !(FitsApartFrom(index, input, dim) &&
                  (src == nullptr || FitsApartFrom(index, *src, -1)))) {
    return Invalid(attrs, inputs, "Expected index ", TorchShape(index.shape),
                   " to be smaller than self ", TorchShape(input.shape),
                   " apart from dimension ", dim,
                   src == nullptr
                       ? ""
                       : absl::StrCat(" and to be smaller size than src ",
                                      TorchShape(src->shape)));
  }
  AddOutputLike(out, input.dtype, input);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferScatterReduce) {
  const std::string& reduce = attrs.Str("reduce");
  if (reduce != "sum" && reduce != "prod" && reduce != "mean" &&
      reduce != "amax" && reduce != "amin") {
    return Invalid(attrs, inputs,
                   "reduce argument must be either sum, prod, mean, amax or "
                   "amin");
  }
  return InferScatter(attrs, inputs, out);
}

HOLDFAST_INFER(InferIndexSelect) {
  const TensorSpec& input = *inputs[0];
  const TensorSpec& index = *inputs[1];
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", input.rank(), &dim);
  if (s.ok()) s = RequireVectorIndex(attrs, inputs);
  if (!s.ok()) return s;
  if (input.rank() == 0) {
    if (index.numel() != 1) {
      return BadIndex(attrs, inputs,
                      "index_select(): Index to scalar can have only 1 value, "
                      "got ",
                      index.numel(), " value(s)");
    }
    AddOutput(out, input.dtype, {});
    return absl::OkStatus();
  }
  Dims shape = input.shape;
  shape[dim] = index.numel();
  AddOutput(out, input.dtype, shape);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferIndexAdd) {
  const TensorSpec& input = *inputs[0];
  const TensorSpec& index = *inputs[1];
  const TensorSpec& source = *inputs[2];
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", input.rank(), &dim);
  if (s.ok()) s = RequireVectorIndex(attrs, inputs);
  if (!s.ok()) return s;
  if (source.dtype != input.dtype) {
    return Invalid(attrs, inputs, "index_add_(): self (",
                   TorchTypeName(input.dtype), ") and source (",
                   TorchTypeName(source.dtype),
                   ") must have the same scalar type");
  }
  if (source.rank() != input.rank()) {
    return Invalid(attrs, inputs,
                   "index_add_(): source must have as many dimensions as self");
  }
  if (SizeAt(source, dim) != index.numel()) {
    return Invalid(attrs, inputs, "index_add_(): Number of indices (",
                   index.numel(), ") should be equal to source.size(dim): (",
                   SizeAt(source, dim), "), for dim: ", dim);
  }
  for (int i = 0; i < input.rank(); ++i) {
    if (i != dim && source.shape[i] != input.shape[i]) {
      return Invalid(attrs, inputs,
                     "source tensor shape must match self tensor shape, "
                     "excluding the specified dimension. Got self.shape = ",
                     TorchShape(input.shape),
                     " source.shape = ", TorchShape(source.shape));
    }
  }
  AddOutputLike(out, input.dtype, input);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferFlip) {
  uint64_t mask = 0;
  absl::Status s =
      DimMask(attrs, inputs, attrs.Ints("dims"), inputs[0]->rank(), &mask);
  if (!s.ok()) return s;
  AddOutputLike(out, inputs[0]->dtype, *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferTri) {
  if (inputs[0]->rank() < 2) {
    return Invalid(attrs, inputs, attrs.schema().name,
                   ": input tensor must have at least 2 dimensions");
  }
  AddOutputLike(out, inputs[0]->dtype, *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferPad) {
  const TensorSpec& input = *inputs[0];
  const Dims& pad = attrs.Ints("pad");
  const int pairs = static_cast<int>(pad.size() / 2);
  if (pad.size() % 2 != 0) {
    return Invalid(attrs, inputs,
                   "Length of pad must be even but instead it equals ",
                   pad.size());
  }
  if (pairs > input.rank()) {
    return Invalid(attrs, inputs,
                   "Length of pad should be no more than twice the number of "
                   "dimensions of the input. Pad length is ",
                   pad.size(), " while the input has ", input.rank(),
                   " dimensions");
  }
  Dims shape = input.shape;
  for (int i = 0; i < pairs; ++i) {
    const int dim = input.rank() - 1 - i;
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    // What is cropped must be there before anything is added.
    int64_t kept = 0, size = 0;
    const bool fits =
        SafeAdd(shape[dim], std::min<int64_t>(before, 0), &kept) &&
        SafeAdd(kept, std::min<int64_t>(after, 0), &kept) &&
        SafeAdd(kept, std::max<int64_t>(before, 0), &size) &&
        SafeAdd(size, std::max<int64_t>(after, 0), &size);
    if (!fits || kept < 0) {
      return Invalid(attrs, inputs, "The input size ", shape[dim],
                     ", plus negative padding ", before, " and ", after,
                     ", resulted in an invalid output size. Check dimension ",
                     dim, " of your input");
    }
    shape[dim] = size;
  }
  AddOutput(out, input.dtype, shape);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferSizedLike) {
  const TensorSpec& grad = *inputs[0];
  const Dims& size = attrs.Ints("input_size");
  if (absl::Status s = CheckShape(grad.dtype, size); !s.ok()) {
    return WithContext(s, attrs, inputs);
  }
  if (size.empty()) {
    return Invalid(attrs, inputs, "input_size must have a dimension");
  }
  int dim = 0;
  absl::Status s =
      DimAttr(attrs, inputs, "dim", static_cast<int>(size.size()), &dim);
  if (!s.ok()) return s;
  // The shape that grad has if the slice (the index) lies inside input_size.
  Dims expected = size;
  bool inside = true;
  if (attrs.schema().id == OpId::slice_backward) {
    const int64_t start = attrs.Int("start"), step = attrs.Int("step");
    const int64_t length = dim < grad.rank() ? grad.shape[dim] : 0;
    int64_t last = 0;
    inside = start >= 0 && start <= size[dim] && step >= 1 &&
             (length == 0 || (SafeMul(length - 1, step, &last) &&
                              SafeAdd(last, start, &last) && last < size[dim]));
    expected[dim] = length;
  } else {
    const int64_t index = attrs.Int("index");
    inside = index >= 0 && index < size[dim];
    expected.erase(expected.begin() + dim);
  }
  if (!inside || grad.shape != expected) {
    return Invalid(attrs, inputs, "grad must be a part of input_size");
  }
  AddOutput(out, grad.dtype, size);
  return absl::OkStatus();
}

}  // namespace holdfast
