// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of activations: each is the gradient times a slope, which the op
// activation_backward knows by name (kernels/elementwise_activation.h).
#include "native_rows.h"

namespace holdfast_torch {
namespace {

using at::Scalar;
using at::Tensor;

bool Alike(const Tensor& grad, const Tensor& x) {
  return Plain({&grad, &x}) && grad.sizes() == x.sizes();
}

Results Slope(const Tensor& grad, const Tensor& x, const char* name,
              double a = 0, double b = 0) {
  static const Op op("activation_backward");
  if (!Alike(grad, x)) return std::nullopt;
  return One(Call(op).In(grad).In(x).Text(name).Float(a).Float(b).Run());
}

Results Gelu(const Tensor& grad, const Tensor& self,
             const std::string& approximate) {
  if (approximate != "none" && approximate != "tanh") return std::nullopt;
  return Slope(grad, self, approximate == "tanh" ? "gelu_tanh" : "gelu");
}

Results Silu(const Tensor& grad, const Tensor& self) {
  return Slope(grad, self, "silu");
}
Results Tanh(const Tensor& grad, const Tensor& output) {
  return Slope(grad, output, "tanh");
}
Results Sigmoid(const Tensor& grad, const Tensor& output) {
  return Slope(grad, output, "sigmoid");
}
Results Hardswish(const Tensor& grad, const Tensor& self) {
  return Slope(grad, self, "hardswish");
}
Results Hardtanh(const Tensor& grad, const Tensor& self, const Scalar& least,
                 const Scalar& most) {
  return Slope(grad, self, "hardtanh", least.toDouble(), most.toDouble());
}

Results Relu(const Tensor& grad, const Tensor& self, const Scalar& threshold) {
  static const Op op("relu_backward");
  if (!Alike(grad, self) || threshold.toDouble() != 0) return std::nullopt;
  return One(Call(op).In(grad).In(self).Run());
}

const Native kKernels[] = {
    {"gelu_backward", NATIVE(Gelu)},
    {"silu_backward", NATIVE(Silu)},
    {"tanh_backward", NATIVE(Tanh)},
    {"sigmoid_backward", NATIVE(Sigmoid)},
    {"hardswish_backward", NATIVE(Hardswish)},
    {"hardtanh_backward", NATIVE(Hardtanh)},
    {"threshold_backward", NATIVE(Relu)},
};

}  // namespace
}  // namespace holdfast_torch
