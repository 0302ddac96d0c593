// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Layer normalisation and dropout.
#include <algorithm>
#include <array>

#include "native_rows.h"

namespace holdfast_torch {
namespace {

using at::Tensor;
using Maybe = std::optional<Tensor>;
using Sizes = std::vector<int64_t>;

bool Normalises(const Tensor& input, const Sizes& shape, const Maybe& weight,
                const Maybe& bias) {
  const auto sizes = input.sizes();
  return Plain({&input, Given(weight), Given(bias)}) && !shape.empty() &&
         shape.size() <= sizes.size() &&
         sizes.slice(sizes.size() - shape.size()) == c10::IntArrayRef(shape) &&
         (Given(weight) == nullptr || weight->sizes() == shape) &&
         (Given(bias) == nullptr || bias->sizes() == shape);
}

Results LayerNorm(const Tensor& input, const Sizes& shape, const Maybe& weight,
                  const Maybe& bias, double eps) {
  static const Op op("group_norm");
  if (!Normalises(input, shape, weight, bias)) return std::nullopt;
  const auto dims = static_cast<int64_t>(shape.size());
  auto [output, mean, rstd] = Call(op)
                                  .In(input)
                                  .In(weight)
                                  .In(bias)
                                  .Int(1)
                                  .Int(dims)
                                  .Float(eps)
                                  .RunHandles<3>();
  c10::SmallVector<int64_t, 5> kept(input.sizes().begin(), input.sizes().end());
  std::fill(kept.end() - dims, kept.end(), 1);
  Results results = One(Wrap(std::move(output)));
  results->push_back(Wrap(std::move(mean)).view(kept));
  results->push_back(Wrap(std::move(rstd)).view(kept));
  return results;
}

Results LayerNormBackward(const Tensor& grad, const Tensor& input,
                          const Sizes& shape, const Tensor& mean,
                          const Tensor& rstd, const Maybe& weight,
                          const Maybe& bias,
                          const std::array<bool, 3>& wanted) {
  static const Op op("group_norm_backward");
  if (!Normalises(input, shape, weight, bias) ||
      !Plain({&grad, &input, &mean, &rstd})) {
    return std::nullopt;
  }
  const auto dims = static_cast<int64_t>(shape.size());
  const auto lead = input.sizes().slice(0, input.sizes().size() - shape.size());
  const Tensor of_mean = mean.view(lead), of_rstd = rstd.view(lead);
  auto found = Call(op)
                   .In(grad)
                   .In(input)
                   .In(weight)
                   .In(of_mean)
                   .In(of_rstd)
                   .Int(1)
                   .Int(dims)
                   .Bool(true)
                   .RunHandles<3>();
  Results results(std::in_place);
  for (size_t i = 0; i < found.size(); ++i) {
    results->push_back(wanted[i] ? Wrap(std::move(found[i])) : Tensor());
  }
  return results;
}

Results Dropout(const Tensor& input, double p, std::optional<bool> train) {
  static const Op op("dropout");
  if (!Plain({&input}) || !train.value_or(true) || !(p > 0 && p <= 1)) {
    return std::nullopt;
  }
  auto [output, mask] = Call(op).In(input).Float(p).RunHandles<2>();
  Results results = One(Wrap(std::move(output)));
  results->push_back(Wrap(std::move(mask)));
  return results;
}

Results DropoutBackward(const Tensor& grad, const Tensor& mask, double scale) {
  if (!Plain({&grad}) || !IsOurs(mask)) return std::nullopt;
  return One(grad.mul(mask).mul(scale));
}

const Native kKernels[] = {
    {"native_layer_norm", NATIVE(LayerNorm)},
    {"native_layer_norm_backward", NATIVE(LayerNormBackward)},
    {"native_dropout", NATIVE(Dropout)},
    {"native_dropout_backward", NATIVE(DropoutBackward)},
};

}  // namespace
}  // namespace holdfast_torch
