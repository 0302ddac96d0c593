// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of 2-D convolution and its two gradients. All three describe one
// convolution from input [N,C,H,W] and weight [O,C/groups,KH,KW] to output
// [N,O,OH,OW]; N may be missing.
#include <algorithm>

#include "ops/infer_rule.h"
#include "ops/op_schema.h"
#include "ops/window.h"

namespace holdfast {
namespace {

absl::Status ReadPair(const Attrs& attrs, SpecList inputs,
                      absl::string_view name, int64_t min, Pair* pair) {
  const Dims& values = attrs.Ints(name);
  if (values.size() != 2) {
    return Invalid(attrs, inputs, name, " must be two ints");
  }
  *pair = {values[0], values[1]};
  for (int64_t value : *pair) {
    if (value < min) {
      return Invalid(attrs, inputs, min == 0 ? "negative " : "non-positive ",
                     name, " is not supported");
    }
    if (value > kMaxWindowField) {
      return Invalid(attrs, inputs, name, " must be at most ", kMaxWindowField);
    }
  }
  return absl::OkStatus();
}

// Checks the convolution of `input` with `weight` (both shapes) and computes
// its output's shape.
absl::Status OutputShape(const Attrs& attrs, SpecList inputs,
                         absl::Span<const int64_t> input,
                         absl::Span<const int64_t> weight, Dims* output) {
  Window window;
  absl::Status s = ReadPair(attrs, inputs, "stride", 1, &window.stride);
  if (s.ok()) s = ReadPair(attrs, inputs, "padding", 0, &window.padding);
  if (s.ok()) s = ReadPair(attrs, inputs, "dilation", 1, &window.dilation);
  if (!s.ok()) return s;
  const int64_t groups = attrs.Int("groups");
  if (groups < 1) {
    return Invalid(attrs, inputs, "non-positive groups is not supported");
  }
  if (weight.size() != 4) {
    return Invalid(attrs, inputs,
                   "weight must have 4 dimensions [O,C/groups,KH,KW], but got "
                   "weight of size: ",
                   TorchShape(weight));
  }
  if (input.size() != 3 && input.size() != 4) {
    return Invalid(attrs, inputs,
                   "Expected 3D (unbatched) or 4D (batched) input to conv2d, "
                   "but got input of size: ",
                   TorchShape(input));
  }
  for (int64_t size : weight) {
    if (size < 1 || size > kMaxWindowField) {
      return Invalid(attrs, inputs, "weight must have no empty dimension");
    }
  }
  const size_t c = input.size() - 3;  // position of the channels
  if (input[c + 1] < 1 || input[c + 2] < 1) {
    return Invalid(attrs, inputs,
                   "input must have no empty dimension but the batch");
  }
  int64_t channels = 0;
  if (!SafeMul(weight[1], groups, &channels) || input[c] != channels) {
    return Invalid(attrs, inputs, "Given groups=", groups, ", weight of size ",
                   TorchShape(weight), ", expected input", TorchShape(input),
                   " to have ", weight[1], "*", groups, " channels, but got ",
                   input[c], " channels instead");
  }
  if (weight[0] % groups != 0) {
    return Invalid(attrs, inputs, "Given groups=", groups,
                   ", expected weight to be divisible by ", groups,
                   " at dimension 0, but got weight of size ",
                   TorchShape(weight), " instead");
  }
  window.kernel = {weight[2], weight[3]};
  output->assign(input.begin(), input.end());
  (*output)[c] = weight[0];
  for (int axis = 0; axis < 2; ++axis) {
    (*output)[c + 1 + axis] = WindowCount(window, axis, input[c + 1 + axis]);
    if ((*output)[c + 1 + axis] < 1) {
      return Invalid(attrs, inputs,
                     "Calculated padded input size per channel: (",
                     input[c + 1] + 2 * window.padding[0], " x ",
                     input[c + 2] + 2 * window.padding[1], "). Kernel size: (",
                     window.kernel[0], " x ", window.kernel[1],
                     "). Kernel size can't be greater than actual input size");
    }
  }
  return absl::OkStatus();
}

absl::Status RequireGradShape(const Attrs& attrs, SpecList inputs,
                              const Dims& expected) {
  if (inputs[0]->shape == expected) return absl::OkStatus();
  return Invalid(attrs, inputs, "grad must have the convolution's shape ",
                 TorchShape(expected));
}

}  // namespace

HOLDFAST_INFER(InferConv2d) {
  const TensorSpec& input = *inputs[0];
  const TensorSpec& weight = *inputs[1];
  const TensorSpec* bias = inputs[2];
  Dims shape;
  absl::Status s =
      OutputShape(attrs, inputs, input.shape, weight.shape, &shape);
  if (!s.ok()) return s;
  if (input.dtype != weight.dtype) {
    return Invalid(attrs, inputs, "Input type (", DTypeName(input.dtype),
                   ") and weight type (", DTypeName(weight.dtype),
                   ") should be the same");
  }
  if (bias != nullptr && bias->dtype != input.dtype) {
    return Invalid(attrs, inputs, "Input type (", DTypeName(input.dtype),
                   ") and bias type (", DTypeName(bias->dtype),
                   ") should be the same");
  }
  if (s = RequireFloat(attrs, inputs, 0); !s.ok()) return s;
  if (bias != nullptr &&
      (bias->rank() != 1 || bias->shape[0] != weight.shape[0])) {
    return Invalid(attrs, inputs, "Given weight of size ",
                   TorchShape(weight.shape),
                   ", expected bias to be 1-dimensional with ", weight.shape[0],
                   " elements, but got bias of size ", TorchShape(bias->shape),
                   " instead");
  }
  AddOutput(out, input.dtype, shape);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferConv2dBackwardInput) {
  const TensorSpec& grad = *inputs[0];
  const Dims& size = attrs.Ints("input_size");
  absl::Status s = CheckShape(grad.dtype, size);
  if (!s.ok()) return WithContext(s, attrs, inputs);
  s = RequireFloat(attrs, inputs, 0);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 0, 1);
  Dims shape;
  if (s.ok()) s = OutputShape(attrs, inputs, size, inputs[1]->shape, &shape);
  if (s.ok()) s = RequireGradShape(attrs, inputs, shape);
  if (s.ok()) AddOutput(out, grad.dtype, size);
  return s;
}

HOLDFAST_INFER(InferConv2dBackwardWeight) {
  const TensorSpec& grad = *inputs[0];
  const Dims& size = attrs.Ints("weight_size");
  absl::Status s = CheckShape(grad.dtype, size);
  if (!s.ok()) return WithContext(s, attrs, inputs);
  s = RequireFloat(attrs, inputs, 0);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 0, 1);
  Dims shape;
  if (s.ok()) s = OutputShape(attrs, inputs, inputs[1]->shape, size, &shape);
  if (s.ok()) s = RequireGradShape(attrs, inputs, shape);
  if (s.ok()) AddOutput(out, grad.dtype, size);
  return s;
}

}  // namespace holdfast
