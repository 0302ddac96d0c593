// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of 2-D and 3-D convolution and of its two gradients. All three describe
// one convolution from input [N,C,...] and weight [O,C/groups,...] to output
// [N,O,...], each with as many sizes as the op's windows have axes; N may be
// missing.
#include <string>

#include "ops/infer_rule.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "ops/window.h"

namespace holdfast {
namespace {

// Axes of the op's windows.
int AxesOf(const Attrs& attrs) {
  switch (attrs.schema().id) {
    case OpId::conv3d:
    case OpId::conv3d_backward_input:
    case OpId::conv3d_backward_weight:
      return 3;
    default:
      return 2;
  }
}

absl::Status ReadAxes(const Attrs& attrs, SpecList inputs,
                      absl::string_view name, int64_t min, WindowInts* out) {
  const Dims& values = attrs.Ints(name);
  const int axes = AxesOf(attrs);
  if (static_cast<int>(values.size()) != axes) {
    return Invalid(attrs, inputs, name, " must be ", axes, " ints");
  }
  for (int axis = 0; axis < axes; ++axis) {
    const int64_t value = values[axis];
    if (value < min) {
      return Invalid(attrs, inputs, min == 0 ? "negative " : "non-positive ",
                     name, " is not supported");
    }
    if (value > kMaxWindowField) {
      return Invalid(attrs, inputs, name, " must be at most ", kMaxWindowField);
    }
    (*out)[axis] = value;
  }
  return absl::OkStatus();
}

absl::Status ReadWindow(const Attrs& attrs, SpecList inputs, Window* window) {
  absl::Status s = ReadAxes(attrs, inputs, "stride", 1, &window->stride);
  if (s.ok()) s = ReadAxes(attrs, inputs, "padding", 0, &window->padding);
  if (s.ok()) s = ReadAxes(attrs, inputs, "dilation", 1, &window->dilation);
  return s;
}

// Numbers of dimensions, and no sizes of zero but the batch's.
absl::Status CheckRanks(const Attrs& attrs, SpecList inputs,
                        absl::Span<const int64_t> input,
                        absl::Span<const int64_t> weight) {
  const size_t axes = AxesOf(attrs);
  if (weight.size() != axes + 2) {
    return Invalid(attrs, inputs, "weight must have ", axes + 2,
                   " dimensions [O,C/groups,", axes == 2 ? "KH,KW" : "KD,KH,KW",
                   "], but got weight of size: ", TorchShape(weight));
  }
  if (input.size() != axes + 1 && input.size() != axes + 2) {
    return Invalid(attrs, inputs, "Expected ", axes + 1, "D (unbatched) or ",
                   axes + 2, "D (batched) input to conv", axes,
                   "d, but got input of size: ", TorchShape(input));
  }
  for (int64_t size : weight) {
    if (size < 1 || size > kMaxWindowField) {
      return Invalid(attrs, inputs, "weight must have no empty dimension");
    }
  }
  for (int64_t size : input.subspan(input.size() - axes)) {
    if (size < 1) {
      return Invalid(attrs, inputs,
                     "input must have no empty dimension but the batch");
    }
  }
  return absl::OkStatus();
}

// "2 x 3" of the axes' numbers.
template <typename Number>
std::string Times(int axes, Number number) {
  std::string text;
  for (int axis = 0; axis < axes; ++axis) {
    absl::StrAppend(&text, axis > 0 ? " x " : "", number(axis));
  }
  return text;
}

// Checks the convolution of `input` with `weight` (both shapes) and computes
// its output's shape.
absl::Status OutputShape(const Attrs& attrs, SpecList inputs,
                         absl::Span<const int64_t> input,
                         absl::Span<const int64_t> weight, Dims* output) {
  Window window;
  absl::Status s = ReadWindow(attrs, inputs, &window);
  if (!s.ok()) return s;
  const int64_t groups = attrs.Int("groups");
  if (groups < 1) {
    return Invalid(attrs, inputs, "non-positive groups is not supported");
  }
  if (s = CheckRanks(attrs, inputs, input, weight); !s.ok()) return s;
  const int axes = AxesOf(attrs);
  const size_t c = input.size() - axes - 1;  // position of the channels
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
  output->assign(input.begin(), input.end());
  (*output)[c] = weight[0];
  for (int axis = 0; axis < axes; ++axis) {
    window.kernel[axis] = weight[2 + axis];
  }
  for (int axis = 0; axis < axes; ++axis) {
    int64_t& count = (*output)[c + 1 + axis];
    count = WindowCount(window, axis, count);
    if (count < 1) {
      const auto padded = [&](int i) {
        return input[c + 1 + i] + 2 * window.padding[i];
      };
      const auto kernel = [&](int i) { return window.kernel[i]; };
      return Invalid(
          attrs, inputs, "Calculated padded input size per channel: (",
          Times(axes, padded), "). Kernel size: (", Times(axes, kernel),
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

HOLDFAST_INFER(InferConv) {
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

HOLDFAST_INFER(InferConvBackwardInput) {
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

HOLDFAST_INFER(InferConvBackwardWeight) {
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
