// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of im2col and its adjoint col2im: windows of images [N,C,H,W] as
// columns [N,C*KH*KW,OH*OW].
#include "ops/infer_rule.h"
#include "ops/op_schema.h"
#include "ops/window.h"

namespace holdfast {
namespace {

absl::Status ReadPair(const Attrs& attrs, SpecList inputs,
                      absl::string_view name, int64_t min, WindowInts* pair) {
  const Dims& values = attrs.Ints(name);
  if (values.size() != 2) {
    return Invalid(attrs, inputs, name, " must be two ints");
  }
  for (int axis = 0; axis < 2; ++axis) {
    if (values[axis] < min) {
      return Invalid(
          attrs, inputs, name,
          min == 0 ? " should be non-negative" : " should be greater than zero",
          ", but got ", TorchShape(values));
    }
    if (values[axis] > kMaxWindowField) {
      return Invalid(attrs, inputs, name, " must be at most ", kMaxWindowField);
    }
    (*pair)[axis] = values[axis];
  }
  return absl::OkStatus();
}

// Rows per channel and number of the columns of images `h` by `w`.
absl::Status CountColumns(const Attrs& attrs, SpecList inputs, int64_t h,
                          int64_t w, int64_t* rows, int64_t* columns) {
  Window window;
  absl::Status s = ReadPair(attrs, inputs, "kernel_size", 1, &window.kernel);
  if (s.ok()) s = ReadPair(attrs, inputs, "dilation", 1, &window.dilation);
  if (s.ok()) s = ReadPair(attrs, inputs, "padding", 0, &window.padding);
  if (s.ok()) s = ReadPair(attrs, inputs, "stride", 1, &window.stride);
  if (!s.ok()) return s;
  const int64_t high = WindowCount(window, 0, h);
  const int64_t wide = WindowCount(window, 1, w);
  if (high < 1 || wide < 1) {
    return Invalid(attrs, inputs, "Given spatial size (", h, ", ", w,
                   "), kernel_size=", TorchShape(attrs.Ints("kernel_size")),
                   ", dilation=", TorchShape(attrs.Ints("dilation")),
                   ", padding=", TorchShape(attrs.Ints("padding")),
                   ", calculated shape of the array of sliding blocks as (",
                   high, ", ", wide,
                   "), but its components must be at least "
                   "one");
  }
  if (!SafeMul(window.kernel[0], window.kernel[1], rows) ||
      !SafeMul(high, wide, columns)) {
    return Invalid(attrs, inputs, "the windows are too many");
  }
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_INFER(InferIm2col) {
  const TensorSpec& input = *inputs[0];
  if (input.rank() != 4 || input.shape[1] < 1 || input.shape[2] < 1 ||
      input.shape[3] < 1) {
    return Invalid(attrs, inputs,
                   "Expected 3D or 4D (batch mode) tensor with possibly 0 "
                   "batch size and other non-zero dimensions for input, but "
                   "got: ",
                   TorchShape(input.shape));
  }
  int64_t rows = 0, columns = 0, height = 0;
  absl::Status s = CountColumns(attrs, inputs, input.shape[2], input.shape[3],
                                &rows, &columns);
  if (!s.ok()) return s;
  if (!SafeMul(input.shape[1], rows, &height)) {
    return Invalid(attrs, inputs, "the windows are too large");
  }
  AddOutput(out, input.dtype, {input.shape[0], height, columns});
  return absl::OkStatus();
}

HOLDFAST_INFER(InferCol2im) {
  const TensorSpec& input = *inputs[0];
  absl::Status s = RequireFloat(attrs, inputs, 0);
  WindowInts size = {};
  if (s.ok()) s = ReadPair(attrs, inputs, "output_size", 1, &size);
  int64_t rows = 0, columns = 0;
  if (s.ok()) {
    s = CountColumns(attrs, inputs, size[0], size[1], &rows, &columns);
  }
  if (!s.ok()) return s;
  if (input.rank() != 3 || input.shape[1] < 1) {
    return Invalid(attrs, inputs,
                   "Expected 2D or 3D (batch mode) tensor for input with "
                   "possibly 0 batch size and non-zero dimensions for input, "
                   "but got: ",
                   TorchShape(input.shape));
  }
  if (input.shape[1] % rows != 0) {
    return Invalid(attrs, inputs,
                   "Expected size of input's dimension 1 to be divisible by "
                   "the product of kernel_size, but got input.size(1)=",
                   input.shape[1],
                   " and kernel_size=", TorchShape(attrs.Ints("kernel_size")));
  }
  if (input.shape[2] != columns) {
    return Invalid(attrs, inputs,
                   "Given output_size=", TorchShape(attrs.Ints("output_size")),
                   ", expected size of input's dimension 2 to match the "
                   "calculated number of sliding blocks ",
                   columns, ", but got input.size(2)=", input.shape[2]);
  }
  AddOutput(out, input.dtype,
            {input.shape[0], input.shape[1] / rows, size[0], size[1]});
  return absl::OkStatus();
}

}  // namespace holdfast
