// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a linear layer calls.
#include "native_rows.h"

namespace holdfast_torch {
namespace {

using at::Scalar;
using at::Tensor;

bool IsOne(const Scalar& value) {
  return !value.isComplex() && value.toDouble() == 1;
}

// A bias is added by the op linear, whose weight is the transposed one: of a
// layer's own weight no view at all.
Results Addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
              const Scalar& beta, const Scalar& alpha) {
  static const Op op("linear");
  if (!Plain({&self, &mat1, &mat2}) || self.dim() != 1 || mat1.dim() != 2 ||
      mat2.dim() != 2 || mat1.size(1) != mat2.size(0) ||
      self.size(0) != mat2.size(1) || !IsOne(alpha) || !IsOne(beta)) {
    return std::nullopt;
  }
  const Tensor weight = mat2.t();
  return One(Call(op).In(mat1).In(weight).In(self).Run());
}

const Native kKernels[] = {{"addmm", NATIVE(Addmm)}};

}  // namespace
}  // namespace holdfast_torch
