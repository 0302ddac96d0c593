// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of two dimensions that are not transposed.
#include <array>

#include "native_rows.h"

namespace holdfast_torch {
namespace {

using at::Tensor;
using Maybe = std::optional<Tensor>;
using Two = std::vector<int64_t>;

bool IsPlane(const Tensor& input, const Tensor& weight, const Two& stride,
             const Two& padding, const Two& dilation) {
  return input.dim() == 4 && weight.dim() == 4 && stride.size() == 2 &&
         padding.size() == 2 && dilation.size() == 2;
}

Results Convolution(const Tensor& input, const Tensor& weight,
                    const Maybe& bias, const Two& stride, const Two& padding,
                    const Two& dilation, bool transposed, const Two& beyond,
                    int64_t groups) {
  static const Op op("conv2d");
  (void)beyond;
  if (transposed || !Plain({&input, &weight, Given(bias)}) ||
      !IsPlane(input, weight, stride, padding, dilation)) {
    return std::nullopt;
  }
  return One(Call(op)
                 .In(input)
                 .In(weight)
                 .In(bias)
                 .Ints(stride)
                 .Ints(padding)
                 .Ints(dilation)
                 .Int(groups)
                 .Run());
}

Results ConvolutionBackward(const Tensor& grad, const Tensor& input,
                            const Tensor& weight, const Two& stride,
                            const Two& padding, const Two& dilation,
                            bool transposed, const Two& beyond, int64_t groups,
                            const std::array<bool, 3>& wanted) {
  static const Op to_input("conv2d_backward_input"),
      to_weight("conv2d_backward_weight");
  (void)beyond;
  if (transposed || !Plain({&grad, &input, &weight}) ||
      !IsPlane(input, weight, stride, padding, dilation)) {
    return std::nullopt;
  }
  const auto gradient = [&](const Op& op, const Tensor& other,
                            c10::IntArrayRef size) {
    return Call(op)
        .In(grad)
        .In(other)
        .Ints(size)
        .Ints(stride)
        .Ints(padding)
        .Ints(dilation)
        .Int(groups)
        .Run();
  };
  Results results(std::in_place);
  results->push_back(wanted[0] ? gradient(to_input, weight, input.sizes())
                               : Tensor());
  results->push_back(wanted[1] ? gradient(to_weight, input, weight.sizes())
                               : Tensor());
  results->push_back(wanted[2] ? grad.sum({0, 2, 3}) : Tensor());
  return results;
}

const Native kKernels[] = {
    {"convolution_overrideable", NATIVE(Convolution)},
    {"convolution_backward_overrideable", NATIVE(ConvolutionBackward)},
};

}  // namespace
}  // namespace holdfast_torch
