// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of boolean masks. How many elements a mask chooses is the kernels' to
// tell.
#include "ops/infer_rule.h"

namespace holdfast {
namespace {

// The mask in slot 1 covers input's dimensions from *dim on.
absl::Status CheckMask(const Attrs& attrs, SpecList inputs, int* dim) {
  const TensorSpec& input = *inputs[0];
  const TensorSpec& mask = *inputs[1];
  absl::Status s = DimAttr(attrs, inputs, "dim", input.rank(), dim);
  if (!s.ok()) return s;
  if (mask.dtype != DType::kBool) {
    return Invalid(attrs, inputs, "a mask must be a bool tensor");
  }
  if (mask.rank() == 0 || *dim + mask.rank() > input.rank()) {
    return BadIndex(attrs, inputs, "too many indices for tensor of dimension ",
                    input.rank());
  }
  for (int d = 0; d < mask.rank(); ++d) {
    if (mask.shape[d] != input.shape[*dim + d]) {
      return BadIndex(attrs, inputs, "The shape of the mask ",
                      TorchShape(mask.shape), " at index ", d,
                      " does not match the shape of the indexed tensor ",
                      TorchShape(input.shape), " at index ", *dim + d);
    }
  }
  return absl::OkStatus();
}

// The mask's dimensions replaced by one of unknown size.
Dims MaskedShape(const TensorSpec& input, const TensorSpec& mask, int dim) {
  Dims shape = input.shape;
  shape.erase(shape.begin() + dim, shape.begin() + dim + mask.rank());
  shape.insert(shape.begin() + dim, kUnknownSize);
  return shape;
}

}  // namespace

HOLDFAST_INFER(InferNonzero) {
  (void)attrs;
  AddOutput(out, DType::kInt64, {kUnknownSize, inputs[0]->rank()});
  return absl::OkStatus();
}

HOLDFAST_INFER(InferIndexMask) {
  int dim = 0;
  absl::Status s = CheckMask(attrs, inputs, &dim);
  if (!s.ok()) return s;
  AddOutput(out, inputs[0]->dtype, MaskedShape(*inputs[0], *inputs[1], dim));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferMaskPut) {
  const TensorSpec& input = *inputs[0];
  const TensorSpec& source = *inputs[2];
  int dim = 0;
  absl::Status s = CheckMask(attrs, inputs, &dim);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 0, 2);
  if (!s.ok()) return s;
  const Dims result = MaskedShape(input, *inputs[1], dim);
  if (attrs.Bool("partial") && (result.size() != 1 || source.rank() != 1)) {
    return Invalid(attrs, inputs,
                   "partial takes a mask of all dimensions and a 1-D source");
  }
  const int lead = static_cast<int>(result.size()) - source.rank();
  bool fits = lead >= 0;
  for (int d = 0; d < source.rank() && fits; ++d) {
    const int64_t size = result[lead + d];
    fits =
        size == kUnknownSize || source.shape[d] == 1 || source.shape[d] == size;
  }
  if (!fits) {
    return Invalid(attrs, inputs, "shape mismatch: value tensor of shape ",
                   TorchShape(source.shape),
                   " cannot be broadcast to indexing result of shape ",
                   ShapeString(result));
  }
  AddOutputLike(out, input.dtype, input);
  return absl::OkStatus();
}

}  // namespace holdfast
