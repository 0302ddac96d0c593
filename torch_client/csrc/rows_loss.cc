// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Softmax and the losses that most models end with.
#include <ATen/core/Reduction.h>

#include "native_rows.h"

namespace holdfast_torch {
namespace {

using at::Tensor;
using Maybe = std::optional<Tensor>;

Results Along(const Op& op, const Tensor& self, int64_t dim,
              bool half_to_float) {
  if (!Plain({&self}) || half_to_float) return std::nullopt;
  return One(Call(op).In(self).Int(dim).Run());
}
Results Softmax(const Tensor& self, int64_t dim, bool half_to_float) {
  static const Op op("softmax");
  return Along(op, self, dim, half_to_float);
}
Results LogSoftmax(const Tensor& self, int64_t dim, bool half_to_float) {
  static const Op op("log_softmax");
  return Along(op, self, dim, half_to_float);
}

Results Back(const Op& op, const Tensor& grad, const Tensor& output,
             int64_t dim, at::ScalarType type) {
  if (!Plain({&grad, &output}) || grad.scalar_type() != type) {
    return std::nullopt;
  }
  return One(Call(op).In(grad).In(output).Int(dim).Run());
}
Results SoftmaxBackward(const Tensor& grad, const Tensor& output, int64_t dim,
                        at::ScalarType type) {
  static const Op op("softmax_backward");
  return Back(op, grad, output, dim, type);
}
Results LogSoftmaxBackward(const Tensor& grad, const Tensor& output,
                           int64_t dim, at::ScalarType type) {
  static const Op op("log_softmax_backward");
  return Back(op, grad, output, dim, type);
}

const char* NameOf(int64_t reduction) {
  if (reduction == at::Reduction::None) return "none";
  return reduction == at::Reduction::Mean ? "mean" : "sum";
}

Results NllLoss(const Tensor& self, const Tensor& target, const Maybe& weight,
                int64_t reduction, int64_t ignore_index) {
  static const Op op("nll_loss");
  if (!Plain({&self, Given(weight)}) || !IsOurs(target)) return std::nullopt;
  auto [output, total] = Call(op)
                             .In(self)
                             .In(target)
                             .In(weight)
                             .Text(NameOf(reduction))
                             .Int(ignore_index)
                             .RunHandles<2>();
  Results results = One(Wrap(std::move(output)));
  results->push_back(Wrap(std::move(total)));
  return results;
}

Results NllLossBackward(const Tensor& grad, const Tensor& self,
                        const Tensor& target, const Maybe& weight,
                        int64_t reduction, int64_t ignore_index,
                        const Tensor& total_weight) {
  static const Op op("nll_loss_backward");
  if (!Plain({&grad, &self, Given(weight), &total_weight}) || !IsOurs(target)) {
    return std::nullopt;
  }
  return One(Call(op)
                 .In(grad)
                 .In(target)
                 .In(weight)
                 .In(total_weight)
                 .Ints(self.sizes())
                 .Text(NameOf(reduction))
                 .Int(ignore_index)
                 .Run());
}

bool Alike(const Tensor& self, const Tensor& target) {
  return Plain({&self, &target}) && self.sizes() == target.sizes();
}

Results MseLoss(const Tensor& self, const Tensor& target, int64_t reduction) {
  if (!Alike(self, target)) return std::nullopt;
  const Tensor difference = self.sub(target);
  const Tensor losses = difference.mul(difference);
  if (reduction == at::Reduction::None) return One(losses);
  return One(reduction == at::Reduction::Mean ? losses.mean() : losses.sum());
}

Results MseLossBackward(const Tensor& grad, const Tensor& self,
                        const Tensor& target, int64_t reduction) {
  if (!Alike(self, target) || !Plain({&grad, &self})) return std::nullopt;
  const Tensor slope = self.sub(target).mul(grad.mul(2));
  if (reduction != at::Reduction::Mean) return One(slope);
  return One(slope.div(slope.numel()));
}

const Native kKernels[] = {
    {"_softmax", NATIVE(Softmax)},
    {"_log_softmax", NATIVE(LogSoftmax)},
    {"_softmax_backward_data", NATIVE(SoftmaxBackward)},
    {"_log_softmax_backward_data", NATIVE(LogSoftmaxBackward)},
    {"nll_loss_forward", NATIVE(NllLoss)},
    {"nll_loss_backward", NATIVE(NllLossBackward)},
    {"mse_loss", NATIVE(MseLoss)},
    {"mse_loss_backward", NATIVE(MseLossBackward)},
};

}  // namespace
}  // namespace holdfast_torch
