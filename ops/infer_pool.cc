// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of 2-D pooling over [N,C,H,W] or [C,H,W].
#include <algorithm>

#include "ops/infer_rule.h"
#include "ops/op_schema.h"
#include "ops/window.h"

namespace holdfast {
namespace {

absl::Status ReadPair(const Attrs& attrs, SpecList inputs,
                      absl::string_view name, absl::string_view torch_name,
                      WindowInts* pair) {
  const Dims& values = attrs.Ints(name);
  if (values.size() != 2) {
    return Invalid(attrs, inputs, name, " must be two ints");
  }
  *pair = {values[0], values[1]};
  const bool padding = name == "padding";
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t value = (*pair)[axis];
    if (padding && value < 0) {
      return Invalid(attrs, inputs,
                     "pad must be non-negative, but got pad: ", value);
    }
    if (!padding && value < 1) {
      return Invalid(attrs, inputs, torch_name,
                     " should be greater than zero, but got ", (*pair)[0],
                     " and ", (*pair)[1]);
    }
    if (value > kMaxWindowField) {
      return Invalid(attrs, inputs, name, " must be at most ", kMaxWindowField);
    }
  }
  return absl::OkStatus();
}

// Max pooling has a dilation, average pooling has none.
absl::Status ReadWindow(const Attrs& attrs, SpecList inputs, bool dilated,
                        Window* window) {
  absl::Status s =
      ReadPair(attrs, inputs, "kernel_size", "kernel size", &window->kernel);
  if (!s.ok()) return s;
  window->stride = window->kernel;
  if (!attrs.None("stride")) {
    s = ReadPair(attrs, inputs, "stride", "stride", &window->stride);
  }
  if (s.ok()) s = ReadPair(attrs, inputs, "padding", "pad", &window->padding);
  if (s.ok() && dilated) {
    s = ReadPair(attrs, inputs, "dilation", "dilation", &window->dilation);
  }
  if (!s.ok()) return s;
  window->ceil_mode = attrs.Bool("ceil_mode");
  for (int axis = 0; axis < 2; ++axis) {
    if (!PaddingIsAtMostHalf(*window, axis)) {
      return Invalid(attrs, inputs,
                     "pad should be at most half of kernel size, but got pad=",
                     window->padding[axis],
                     " and kernel_size=", window->kernel[axis]);
    }
  }
  return absl::OkStatus();
}

// A batch may be empty, a channel or an image may not.
absl::Status CheckImages(const Attrs& attrs, SpecList inputs,
                         absl::Span<const int64_t> input) {
  bool ok = input.size() == 3 || input.size() == 4;
  for (size_t i = input.size() == 4 ? 1 : 0; ok && i < input.size(); ++i) {
    ok = input[i] > 0;
  }
  if (ok) return absl::OkStatus();
  return Invalid(attrs, inputs,
                 "Expected 3D or 4D (batch mode) tensor with optional 0 dim "
                 "batch size for input, but got: ",
                 TorchShape(input));
}

absl::Status PooledShape(const Attrs& attrs, SpecList inputs,
                         absl::Span<const int64_t> input, const Window& window,
                         Dims* output) {
  if (absl::Status s = CheckImages(attrs, inputs, input); !s.ok()) return s;
  const size_t h = input.size() - 2;
  output->assign(input.begin(), input.end());
  for (int axis = 0; axis < 2; ++axis) {
    (*output)[h + axis] = WindowCount(window, axis, input[h + axis]);
  }
  if ((*output)[h] < 1 || (*output)[h + 1] < 1) {
    return Invalid(attrs, inputs, "Given input size: (", input[h - 1], "x",
                   input[h], "x", input[h + 1], "). Calculated output size: (",
                   input[h - 1], "x", (*output)[h], "x", (*output)[h + 1],
                   "). Output size is too small");
  }
  return absl::OkStatus();
}

// Images `pooled` belong to images `whole`: equal batch and channels.
bool SameChannels(absl::Span<const int64_t> pooled,
                  absl::Span<const int64_t> whole) {
  if (pooled.size() != whole.size()) return false;
  const size_t lead = whole.size() - 2;
  return pooled.subspan(0, lead) == whole.subspan(0, lead);
}

absl::Status RequireIndices(const Attrs& attrs, SpecList inputs) {
  if (inputs[1]->dtype == DType::kInt64) return absl::OkStatus();
  return Invalid(attrs, inputs, "indices must be int64");
}

absl::Status CheckDivisor(const Attrs& attrs, SpecList inputs) {
  if (attrs.None("divisor_override") || attrs.Int("divisor_override") != 0) {
    return absl::OkStatus();
  }
  return Invalid(attrs, inputs, "divisor must be not zero");
}

}  // namespace

HOLDFAST_INFER(InferMaxPool2d) {
  const TensorSpec& input = *inputs[0];
  Window window;
  Dims shape;
  absl::Status s = ReadWindow(attrs, inputs, /*dilated=*/true, &window);
  if (s.ok()) s = PooledShape(attrs, inputs, input.shape, window, &shape);
  if (s.ok()) s = RequireFloat(attrs, inputs, 0);
  if (!s.ok()) return s;
  AddOutput(out, input.dtype, shape);
  AddOutput(out, DType::kInt64, shape);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferMaxPool2dBackward) {
  const TensorSpec& grad = *inputs[0];
  const Dims& size = attrs.Ints("input_size");
  absl::Status s = CheckShape(grad.dtype, size);
  if (!s.ok()) return WithContext(s, attrs, inputs);
  s = CheckImages(attrs, inputs, size);
  if (s.ok()) s = RequireFloat(attrs, inputs, 0);
  if (s.ok()) s = RequireIndices(attrs, inputs);
  if (!s.ok()) return s;
  if (grad.shape != inputs[1]->shape || !SameChannels(grad.shape, size)) {
    return Invalid(attrs, inputs,
                   "grad and indices must have one shape, with the batch and "
                   "channels of input_size");
  }
  AddOutput(out, grad.dtype, size);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferMaxPool2dGather) {
  const TensorSpec& input = *inputs[0];
  const TensorSpec& indices = *inputs[1];
  absl::Status s = CheckImages(attrs, inputs, input.shape);
  if (s.ok()) s = RequireIndices(attrs, inputs);
  if (!s.ok()) return s;
  if (!SameChannels(indices.shape, input.shape)) {
    return Invalid(attrs, inputs,
                   "indices must have the batch and channels of input");
  }
  AddOutputLike(out, input.dtype, indices);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferAdaptiveMaxPool2d) {
  const TensorSpec& input = *inputs[0];
  const Dims& size = attrs.Ints("output_size");
  absl::Status s = CheckImages(attrs, inputs, input.shape);
  if (s.ok()) s = RequireFloat(attrs, inputs, 0);
  if (!s.ok()) return s;
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 ||
      std::max(size[0], size[1]) > kMaxWindowField) {
    return Invalid(attrs, inputs, "output_size must be two positive ints");
  }
  for (int axis = 0; axis < 2; ++axis) {
    if (input.shape[input.rank() - 2 + axis] > kMaxWindowField) {
      return Invalid(attrs, inputs, "input must be at most ", kMaxWindowField,
                     " high and wide");
    }
  }
  Dims shape = input.shape;
  std::copy(size.begin(), size.end(), shape.end() - 2);
  AddOutput(out, input.dtype, shape);
  AddOutput(out, DType::kInt64, shape);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferAvgPool2d) {
  const TensorSpec& input = *inputs[0];
  Window window;
  Dims shape;
  absl::Status s = CheckDivisor(attrs, inputs);
  if (s.ok()) s = ReadWindow(attrs, inputs, /*dilated=*/false, &window);
  if (s.ok()) s = PooledShape(attrs, inputs, input.shape, window, &shape);
  if (s.ok()) s = RequireFloat(attrs, inputs, 0);
  if (s.ok()) AddOutput(out, input.dtype, shape);
  return s;
}

HOLDFAST_INFER(InferAvgPool2dBackward) {
  const TensorSpec& grad = *inputs[0];
  const Dims& size = attrs.Ints("input_size");
  absl::Status s = CheckShape(grad.dtype, size);
  if (!s.ok()) return WithContext(s, attrs, inputs);
  Window window;
  Dims shape;
  s = CheckDivisor(attrs, inputs);
  if (s.ok()) s = ReadWindow(attrs, inputs, /*dilated=*/false, &window);
  if (s.ok()) s = PooledShape(attrs, inputs, size, window, &shape);
  if (s.ok()) s = RequireFloat(attrs, inputs, 0);
  if (!s.ok()) return s;
  if (grad.shape != shape) {
    return Invalid(attrs, inputs, "grad must have the pooled shape ",
                   TorchShape(shape));
  }
  AddOutput(out, grad.dtype, size);
  return absl::OkStatus();
}

}  // namespace holdfast
