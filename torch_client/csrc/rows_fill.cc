// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Constants, and gradients that begin as zeros.
#include "native_rows.h"

namespace holdfast_torch {
namespace {

using at::Scalar;
using at::Tensor;

// A tensor that nothing was written to is made full at its first use.
Results Fill(const Tensor& self, const Scalar& value) {
  static const Op op("fill");
  if (!IsOurs(self) || value.isComplex()) return std::nullopt;
  if (self.numel() == 0 || FillLater(self, value)) return One(self);
  Call(op).In(self).Scalar(value).RunInPlace();
  return One(self);
}

Results Zero(const Tensor& self) { return Fill(self, 0); }

Results EmbeddingBackward(const Tensor& grad, const Tensor& indices,
                          int64_t num_weights, int64_t padding_idx,
                          bool scale_grad_by_freq) {
  static const Op full("full"), add("index_add");
  if (!Plain({&grad}) || !IsOurs(indices) || padding_idx >= 0 ||
      scale_grad_by_freq || grad.dim() == 0 || grad.numel() == 0) {
    return std::nullopt;
  }
  const int64_t width = grad.size(-1);
  const Tensor rows = grad.reshape({-1, width});
  const Tensor places = indices.reshape({-1});
  const int64_t size[] = {num_weights, width};
  const Handle zeros =
      Call(full).Ints(size).Float(0).Type(grad.scalar_type()).RunHandle();
  return One(Call(add).In(zeros.get()).In(places).In(rows).Int(0).Run());
}

const Native kKernels[] = {
    {"fill_.Scalar", NATIVE(Fill)},
    {"zero_", NATIVE(Zero)},
    {"embedding_dense_backward", NATIVE(EmbeddingBackward)},
};

}  // namespace
}  // namespace holdfast_torch
