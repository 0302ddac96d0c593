// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// batch_norm and its gradient: statistics of a channel over all samples.
#include <cmath>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/norm_sums.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/reducers.h"

namespace holdfast {
namespace {

// [batch, channels, inner].
struct BatchLayout {
  int64_t batch = 1, channels = 1, inner = 1;
  HOLDFAST_HD int64_t At(int64_t c, int64_t j) const {
    return (j / inner * channels + c) * inner + j % inner;
  }
  int64_t count() const { return batch * inner; }
};

BatchLayout BatchLayoutOf(const TensorSpec& spec) {
  BatchLayout l;
  l.batch = spec.shape[0];
  l.channels = spec.shape[1];
  for (int d = 2; d < spec.rank(); ++d) l.inner *= spec.shape[d];
  return l;
}

template <typename T>
absl::Status BatchNorm(KernelContext& context, const BatchLayout& l, const T* x,
                       const T* weight, const T* bias, const T* running_mean,
                       const T* running_var, double eps, T* out, T* means,
                       T* vars) {
  const double count = static_cast<double>(l.count());
  absl::Status s;
  if (running_mean != nullptr) {
    s = ForEach(context, l.channels, [=] HOLDFAST_LAMBDA(int64_t c) {
      means[c] = running_mean[c];
      vars[c] = running_var[c];
    });
  } else {
    s = ReduceRows<MomentsOf<T>>(
        context, l.channels, l.count(), l.inner == 1,
        [=] HOLDFAST_LAMBDA(int64_t c, int64_t j) {
          return MomentsOf<T>::One(x[l.At(c, j)]);
        },
        [=] HOLDFAST_LAMBDA(int64_t c, Moments m) {
          means[c] = static_cast<T>(m.mean);
          vars[c] = static_cast<T>(m.squares / count);
        });
  }
  if (!s.ok()) return s;
  return ForEach(
      context, l.count() * l.channels, [=] HOLDFAST_LAMBDA(int64_t i) {
        const int64_t c = i / l.inner % l.channels;
        const T rstd = static_cast<T>(1 / std::sqrt(vars[c] + eps));
        const T shift = bias == nullptr ? T(0) : bias[c];
        out[i] = (x[i] - means[c]) * (rstd * Factor(weight, c)) + shift;
      });
}

template <typename T>
absl::Status BatchNormBackward(KernelContext& context, const BatchLayout& l,
                               const T* g, const T* x, const T* weight,
                               const T* means, const T* vars, double eps,
                               bool training, T* out, T* weight_grad,
                               T* bias_grad) {
  absl::Status s = ReduceRows<AddSums>(
      context, l.channels, l.count(), l.inner == 1,
      [=] HOLDFAST_LAMBDA(int64_t c, int64_t j) {
        const int64_t at = l.At(c, j);
        const double d = x[at] - means[c];
        return TwoSums{static_cast<double>(g[at]), g[at] * d};
      },
      [=] HOLDFAST_LAMBDA(int64_t c, TwoSums sums) {
        bias_grad[c] = static_cast<T>(sums.first);
        weight_grad[c] = static_cast<T>(sums.second / std::sqrt(vars[c] + eps));
      });
  if (!s.ok()) return s;
  const double count = static_cast<double>(l.count());
  return ForEach(context, l.count() * l.channels,
                 [=] HOLDFAST_LAMBDA(int64_t i) {
                   const int64_t c = i / l.inner % l.channels;
                   const double rstd = 1 / std::sqrt(vars[c] + eps);
                   const double scale = rstd * Factor(weight, c);
                   double grad = g[i];
                   if (training) {
                     const double d = (x[i] - means[c]) * rstd;
                     grad -= (bias_grad[c] + d * weight_grad[c]) / count;
                   }
                   out[i] = static_cast<T>(grad * scale);
                 });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(batch_norm) {
  const TensorSpec& spec = *inputs[0].spec;
  const BatchLayout l = BatchLayoutOf(spec);
  ContiguousOperands<6> in;
  absl::Status s = in.Make(context, inputs, spec.dtype);
  if (!s.ok()) return s;
  return DispatchFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return BatchNorm<T>(context, l, in.as<T>(0), in.as<T>(1), in.as<T>(2),
                        in.as<T>(3), in.as<T>(4), attrs.Float("eps"),
                        outputs[0].as<T>(), outputs[1].as<T>(),
                        outputs[2].as<T>());
  });
}

HOLDFAST_CUDA_KERNEL(batch_norm_backward) {
  const TensorSpec& spec = *inputs[1].spec;
  const BatchLayout l = BatchLayoutOf(spec);
  ContiguousOperands<6> in;
  absl::Status s = in.Make(context, inputs, spec.dtype);
  if (!s.ok()) return s;
  return DispatchFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return BatchNormBackward<T>(
        context, l, in.as<T>(0), in.as<T>(1), in.as<T>(2), in.as<T>(3),
        in.as<T>(4), attrs.Float("eps"), attrs.Bool("training"),
        outputs[0].as<T>(), outputs[1].as<T>(), outputs[2].as<T>());
  });
}

}  // namespace holdfast
