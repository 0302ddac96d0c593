// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of views: same storage, another shape, other strides, another offset.
// Everything but as_strided can only reach elements that its input reaches, and
// keeps (size - 1) * stride within the input's span. So products of an index
// below size and its stride never overflow. Strides of size-1 and size-0
// dimensions mean nothing; they follow PyTorch's formulas as far as those stay
// small.
#include <algorithm>
#include <utility>

#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// Stride `a` * `b` where no element depends on it.
int64_t IdleStride(int64_t a, int64_t b) {
  int64_t stride = 0;
  return SafeMul(a, b, &stride) && stride <= kMaxTensorBytes ? stride : 1;
}

// Fills in the -1 of a wanted shape.
absl::Status ResolveSize(const Attrs& attrs, SpecList inputs, Dims* shape) {
  const int64_t numel = inputs[0]->numel();
  const std::string wanted = TorchShape(*shape);
  int unknown = -1;
  int64_t known = 1;
  bool overflow = false;
  for (size_t i = 0; i < shape->size(); ++i) {
    const int64_t size = (*shape)[i];
    if (size == -1) {
      if (unknown >= 0) {
        return Invalid(attrs, inputs, "only one dimension can be inferred");
      }
      unknown = static_cast<int>(i);
    } else if (size < 0) {
      return Invalid(attrs, inputs, "invalid shape dimension ", size);
    } else {
      overflow |= !SafeMul(known, size, &known);
    }
  }
  if (!overflow && unknown >= 0 && known == 0 && numel == 0) {
    return Invalid(attrs, inputs,
                   "cannot reshape tensor of 0 elements into shape ", wanted,
                   " because the unspecified dimension size -1 can be any "
                   "value and is ambiguous");
  }
  const bool fits =
      !overflow &&
      (unknown < 0 ? known == numel : known > 0 && numel % known == 0);
  if (!fits) {
    return Invalid(attrs, inputs, "shape '", wanted,
                   "' is invalid for input of size ", numel);
  }
  if (unknown >= 0) (*shape)[unknown] = numel / known;
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_INFER(InferView) {
  const TensorSpec& input = *inputs[0];
  TensorSpec view;
  view.dtype = input.dtype;
  view.offset = input.offset;
  view.shape = attrs.Ints("size");
  if (absl::Status s = ResolveSize(attrs, inputs, &view.shape); !s.ok()) {
    return s;
  }
  if (absl::Status s = CheckViewShape(view.dtype, view.shape); !s.ok()) {
    return WithContext(s, attrs, inputs);
  }
  if (!ViewStrides(input, view.shape, &view.strides)) {
    return Invalid(attrs, inputs,
                   "view size is not compatible with input tensor's size and "
                   "stride (at least one dimension spans across two "
                   "contiguous subspaces). Use .reshape(...) instead");
  }
  AddView(out, std::move(view));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferDetach) {
  (void)attrs;
  AddView(out, *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferPermute) {
  const TensorSpec& input = *inputs[0];
  const Dims& dims = attrs.Ints("dims");
  if (static_cast<int>(dims.size()) != input.rank()) {
    return Invalid(attrs, inputs,
                   "permute(): number of dimensions in the tensor input does "
                   "not match the length of the desired ordering of dimensions "
                   "i.e. input.dim() = ",
                   input.rank(), " is not equal to len(dims) = ", dims.size());
  }
  TensorSpec view = input;
  uint64_t seen = 0;
  for (int i = 0; i < input.rank(); ++i) {
    absl::StatusOr<int> dim = NormalizeDim(dims[i], input.rank());
    if (!dim.ok()) return WithContext(dim.status(), attrs, inputs);
    const uint64_t bit = uint64_t{1} << *dim;
    if (seen & bit) {
      return Invalid(attrs, inputs,
                     "permute(): duplicate dims are not allowed");
    }
    seen |= bit;
    view.shape[i] = input.shape[*dim];
    view.strides[i] = input.strides[*dim];
  }
  AddView(out, std::move(view));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferTranspose) {
  const int rank = inputs[0]->rank();
  int a = 0, b = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim0", rank, &a);
  if (s.ok()) s = DimAttr(attrs, inputs, "dim1", rank, &b);
  if (!s.ok()) return s;
  TensorSpec view = *inputs[0];
  if (rank > 0) {
    std::swap(view.shape[a], view.shape[b]);
    std::swap(view.strides[a], view.strides[b]);
  }
  AddView(out, std::move(view));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferExpand) {
  const TensorSpec& input = *inputs[0];
  const Dims& size = attrs.Ints("size");
  const int rank = static_cast<int>(size.size());
  const int lead = rank - input.rank();
  if (lead < 0) {
    return Invalid(attrs, inputs, "the number of sizes provided (", rank,
                   ") must be greater or equal to the number of dimensions in "
                   "the tensor (",
                   input.rank(), ")");
  }
  TensorSpec view;
  view.dtype = input.dtype;
  view.offset = input.offset;
  view.shape.resize(rank);
  view.strides.resize(rank);
  for (int i = rank - 1; i >= 0; --i) {
    const int64_t old_size = i < lead ? 1 : input.shape[i - lead];
    int64_t new_size = size[i];
    if (new_size == -1) {
      if (i < lead) {
        return Invalid(attrs, inputs,
                       "The expanded size of the tensor (-1) isn't allowed in "
                       "a leading, non-existing dimension ",
                       i);
      }
      new_size = old_size;
    }
    if (new_size < 0 || (old_size != 1 && new_size != old_size)) {
      return Invalid(attrs, inputs, "The expanded size of the tensor (",
                     new_size, ") must match the existing size (", old_size,
                     ") at non-singleton dimension ", i,
                     ".  Target sizes: ", TorchShape(size),
                     ".  Tensor sizes: ", TorchShape(input.shape));
    }
    view.shape[i] = new_size;
    if (new_size != old_size) {
      view.strides[i] = 0;
    } else if (i >= lead) {
      view.strides[i] = input.strides[i - lead];
    } else {  // a new dimension of size 1
      view.strides[i] =
          i + 1 < rank ? IdleStride(view.shape[i + 1], view.strides[i + 1]) : 1;
    }
  }
  AddView(out, std::move(view));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferSlice) {
  const TensorSpec& input = *inputs[0];
  if (input.rank() == 0) {
    return BadIndex(attrs, inputs,
                    "slice() cannot be applied to a 0-dim tensor");
  }
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", input.rank(), &dim);
  if (!s.ok()) return s;
  const int64_t step = attrs.Int("step");
  if (step < 1) return Invalid(attrs, inputs, "slice step must be positive");
  const int64_t size = input.shape[dim];
  // Python's rule: negative counts from the end, then clamp.
  auto clamp = [size](int64_t index) {
    return std::min(std::max<int64_t>(index < 0 ? index + size : index, 0),
                    size);
  };
  const int64_t start = attrs.None("start") ? 0 : clamp(attrs.Int("start"));
  const int64_t end =
      std::max(start, attrs.None("end") ? size : clamp(attrs.Int("end")));
  const int64_t span = end - start;
  const int64_t length = span / step + (span % step != 0 ? 1 : 0);
  TensorSpec view = input;
  view.shape[dim] = length;
  if (length > 0) view.offset += start * input.strides[dim];
  view.strides[dim] = length > 1 ? input.strides[dim] * step
                                 : IdleStride(input.strides[dim], step);
  AddView(out, std::move(view));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferSelect) {
  const TensorSpec& input = *inputs[0];
  if (input.rank() == 0) {
    return BadIndex(attrs, inputs,
                    "select() cannot be applied to a 0-dim tensor");
  }
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", input.rank(), &dim);
  if (!s.ok()) return s;
  const int64_t size = input.shape[dim];
  const int64_t index = attrs.Int("index");
  if (index < -size || index >= size) {
    return BadIndex(attrs, inputs, "index ", index,
                    " is out of bounds for dimension ", dim, " with size ",
                    size);
  }
  TensorSpec view = input;
  view.offset += (index < 0 ? index + size : index) * input.strides[dim];
  view.shape.erase(view.shape.begin() + dim);
  view.strides.erase(view.strides.begin() + dim);
  AddView(out, std::move(view));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferUnsqueeze) {
  const TensorSpec& input = *inputs[0];
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", input.rank() + 1, &dim);
  if (!s.ok()) return s;
  const int64_t stride =
      dim < input.rank() ? IdleStride(input.shape[dim], input.strides[dim]) : 1;
  TensorSpec view = input;
  view.shape.insert(view.shape.begin() + dim, 1);
  view.strides.insert(view.strides.begin() + dim, stride);
  AddView(out, std::move(view));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferSqueeze) {
  const TensorSpec& input = *inputs[0];
  uint64_t mask = ~uint64_t{0};
  if (const Dims* dims = std::get_if<Dims>(&attrs.Get("dim"))) {
    absl::Status s = DimMask(attrs, inputs, *dims, input.rank(), &mask);
    if (!s.ok()) return s;
  }
  TensorSpec view;
  view.dtype = input.dtype;
  view.offset = input.offset;
  for (int i = 0; i < input.rank(); ++i) {
    if (input.shape[i] == 1 && (mask >> i & 1) != 0) continue;
    view.shape.push_back(input.shape[i]);
    view.strides.push_back(input.strides[i]);
  }
  AddView(out, std::move(view));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferAsStrided) {
  const TensorSpec& input = *inputs[0];
  TensorSpec view;
  view.dtype = input.dtype;
  view.shape = attrs.Ints("size");
  view.strides = attrs.Ints("stride");
  view.offset =
      attrs.None("storage_offset") ? input.offset : attrs.Int("storage_offset");
  if (view.shape.size() != view.strides.size()) {
    return Invalid(attrs, inputs, "mismatch in length of strides and shape");
  }
  for (int64_t stride : view.strides) {
    if (stride < 0) {
      return Invalid(attrs, inputs,
                     "as_strided: Negative strides are not supported at the "
                     "moment, got strides: ",
                     TorchShape(view.strides));
    }
    // Also where no element depends on it: kernels multiply strides.
    if (stride > kMaxTensorBytes) {
      return Invalid(attrs, inputs, "a stride must be at most ",
                     kMaxTensorBytes);
    }
  }
  if (view.offset < 0 || view.offset > kMaxTensorBytes) {
    return Invalid(attrs, inputs, "Tensor: invalid storage offset ",
                   view.offset);
  }
  // The server knows the storage and checks against its real size.
  if (absl::Status s = CheckFits(view, kMaxTensorBytes); !s.ok()) {
    return WithContext(s, attrs, inputs);
  }
  AddView(out, std::move(view));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferAsStridedScatter) {
  const TensorSpec& input = *inputs[0];
  const TensorSpec& src = *inputs[1];
  TensorSpec part;
  part.dtype = input.dtype;
  part.shape = attrs.Ints("size");
  part.strides = attrs.Ints("stride");
  part.offset = attrs.None("storage_offset") ? 0 : attrs.Int("storage_offset");
  if (part.shape.size() != part.strides.size()) {
    return Invalid(attrs, inputs, "mismatch in length of strides and shape");
  }
  if (src.shape != part.shape || src.dtype != input.dtype) {
    return Invalid(attrs, inputs, "src must have shape ",
                   TorchShape(part.shape), " and input's dtype");
  }
  if (absl::Status s = CheckFits(part, input.nbytes()); !s.ok()) {
    return WithContext(s, attrs, inputs);
  }
  // The kernel writes in parallel.
  if (MayOverlap(part)) {
    return Invalid(attrs, inputs, "no two elements of src may share a place");
  }
  AddOutput(out, input.dtype, input.shape);
  return absl::OkStatus();
}

// Complex elements are pairs: strides and offsets of the parts are twice as
// large. What a complex view spans fits twice into kMaxTensorBytes.
HOLDFAST_INFER(InferViewAsReal) {
  const TensorSpec& input = *inputs[0];
  if (!IsComplex(input.dtype)) {
    return Invalid(attrs, inputs,
                   "view_as_real is only supported for complex tensors");
  }
  TensorSpec spec = input;
  spec.dtype = RealType(input.dtype);
  spec.offset *= 2;
  for (int64_t& stride : spec.strides) stride *= 2;
  spec.shape.push_back(2);
  spec.strides.push_back(1);
  AddView(out, std::move(spec));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferViewAsComplex) {
  const TensorSpec& input = *inputs[0];
  if (input.dtype != DType::kFloat32 && input.dtype != DType::kFloat64) {
    return Invalid(attrs, inputs,
                   "view_as_complex is only supported for float and double "
                   "tensors, but got a tensor of scalar type: ",
                   TorchTypeName(input.dtype));
  }
  if (input.rank() == 0) {
    return Invalid(attrs, inputs,
                   "Input tensor must have one or more dimensions");
  }
  if (input.shape.back() != 2) {
    return Invalid(attrs, inputs,
                   "Tensor must have a last dimension of size 2");
  }
  if (input.strides.back() != 1) {
    return Invalid(attrs, inputs,
                   "Tensor must have a last dimension with stride 1");
  }
  TensorSpec spec = input;
  spec.dtype = PromoteTypes(input.dtype, DType::kComplex64);
  spec.shape.pop_back();
  spec.strides.pop_back();
  bool even = spec.offset % 2 == 0;
  spec.offset /= 2;
  for (int64_t& stride : spec.strides) {
    even &= stride % 2 == 0;
    stride /= 2;
  }
  if (!even) {
    return Invalid(attrs, inputs,
                   "Tensor must have a storage_offset and strides divisible by "
                   "2, except in its last dimension");
  }
  AddView(out, std::move(spec));
  return absl::OkStatus();
}

}  // namespace holdfast
