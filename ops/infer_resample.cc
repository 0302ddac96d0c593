// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of resampling: planes resized along their axes, and sums of weighted
// elements that an index picks.
#include <cmath>
#include <limits>
#include <string>

#include "ops/infer_rule.h"
#include "ops/op_schema.h"
#include "ops/window.h"

namespace holdfast {
namespace {

constexpr absl::string_view kModes[] = {
    "nearest", "nearest-exact",    "linear",         "cubic",
    "area",    "linear-antialias", "cubic-antialias"};

// The last two dimensions of input 0 become `size_name`'s.
absl::Status Resized(const Attrs& attrs, SpecList inputs,
                     absl::string_view size_name, OutputSpecs* out) {
  const TensorSpec& input = *inputs[0];
  if (absl::Status s = RequireFloat(attrs, inputs, 0); !s.ok()) return s;
  const std::string& mode = attrs.Str("mode");
  bool known = false;
  for (absl::string_view m : kModes) known = known || m == mode;
  if (!known) return Invalid(attrs, inputs, "unknown mode");
  for (const char* name : {"scale_h", "scale_w"}) {
    const double scale = attrs.Float(name);
    if (!std::isfinite(scale) || scale < 0) {
      return Invalid(attrs, inputs, name, " must be positive");
    }
  }
  const Dims& size = attrs.Ints(size_name);
  if (input.rank() < 2 || size.size() != 2) {
    return Invalid(attrs, inputs, "input must have two dimensions to resize");
  }
  Dims shape = input.shape;
  for (int axis = 0; axis < 2; ++axis) {
    int64_t& from = shape[shape.size() - 2 + axis];
    if (from < 1 || size[axis] < 1 || from > kMaxWindowField ||
        size[axis] > kMaxWindowField) {
      return Invalid(attrs, inputs,
                     "Input and output sizes should be greater than 0, but got "
                     "input ",
                     TorchShape(input.shape), " and output ", TorchShape(size));
    }
    from = size[axis];
  }
  AddOutput(out, input.dtype, shape);
  return absl::OkStatus();
}

// Index [N,K,P] int64 and, of one float type, operand `slot` [N,K,P] if
// `weighted`, else [N,C,L].
absl::Status CheckGather(const Attrs& attrs, SpecList inputs, bool weighted) {
  absl::Status s = RequireFloat(attrs, inputs, 0);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 0, 2);
  if (!s.ok()) return s;
  const TensorSpec &first = *inputs[0], &index = *inputs[1], &last = *inputs[2];
  if (index.dtype != DType::kInt64) {
    return Invalid(attrs, inputs, "index must be int64");
  }
  if (first.rank() != 3 || index.rank() != 3 || last.rank() != 3 ||
      index.shape[0] != first.shape[0] || last.shape[0] != first.shape[0]) {
    return Invalid(attrs, inputs,
                   "tensors must have three dimensions and one batch size");
  }
  if (weighted && last.shape != index.shape) {
    return Invalid(attrs, inputs, "weight must have the shape of index");
  }
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_INFER(InferResample2d) {
  return Resized(attrs, inputs, "output_size", out);
}

HOLDFAST_INFER(InferResample2dBackward) {
  return Resized(attrs, inputs, "input_size", out);
}

HOLDFAST_INFER(InferGridTaps) {
  absl::Status s = RequireFloat(attrs, inputs, 0);
  if (!s.ok()) return s;
  const Dims& grid = inputs[0]->shape;
  const absl::Span<const int64_t> size = attrs.Ints("size");
  const int64_t axes = static_cast<int64_t>(size.size());
  if (axes < 2 || axes > 3 || grid.size() != 3 || grid[2] != axes) {
    return Invalid(attrs, inputs,
                   "grid must be [N,P,2] or [N,P,3], with a size per position");
  }
  int64_t elements = 1;
  for (int64_t n : size) {
    if (n < 1 || n > std::numeric_limits<int32_t>::max() ||
        __builtin_mul_overflow(elements, n, &elements)) {
      return Invalid(attrs, inputs, "size must be positive and not too large");
    }
  }
  const std::string& mode = attrs.Str("mode");
  const std::string& padding = attrs.Str("padding_mode");
  if ((mode != "bilinear" && mode != "nearest") ||
      (padding != "zeros" && padding != "border" && padding != "reflection")) {
    return Invalid(attrs, inputs, "mode or padding_mode is unknown");
  }
  const int64_t taps = mode == "nearest" ? 1 : int64_t{1} << axes;
  AddOutput(out, DType::kInt64, {grid[0], taps, grid[1]});
  AddOutput(out, inputs[0]->dtype, {grid[0], taps, grid[1]});
  return absl::OkStatus();
}

HOLDFAST_INFER(InferWeightedGather) {
  if (absl::Status s = CheckGather(attrs, inputs, true); !s.ok()) return s;
  const Dims &input = inputs[0]->shape, &index = inputs[1]->shape;
  AddOutput(out, inputs[0]->dtype, {input[0], input[1], index[2]});
  return absl::OkStatus();
}

HOLDFAST_INFER(InferWeightedGatherBackwardInput) {
  if (absl::Status s = CheckGather(attrs, inputs, true); !s.ok()) return s;
  const Dims &grad = inputs[0]->shape, &index = inputs[1]->shape;
  const int64_t size = attrs.Int("size");
  if (size < 0 || grad[2] != index[2]) {
    return Invalid(attrs, inputs,
                   "grad must have an element per channel and column of index");
  }
  AddOutput(out, inputs[0]->dtype, {grad[0], grad[1], size});
  return absl::OkStatus();
}

HOLDFAST_INFER(InferWeightedGatherBackwardWeight) {
  if (absl::Status s = CheckGather(attrs, inputs, false); !s.ok()) return s;
  const Dims &grad = inputs[0]->shape, &index = inputs[1]->shape,
             &input = inputs[2]->shape;
  if (grad[1] != input[1] || grad[2] != index[2]) {
    return Invalid(attrs, inputs,
                   "grad must have an element per channel and column of index");
  }
  AddOutput(out, inputs[0]->dtype, index);
  return absl::OkStatus();
}

}  // namespace holdfast
