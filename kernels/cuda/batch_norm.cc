// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// batch_norm and its gradient: sums of a channel over all samples, four numbers
// per channel made of them once, and one multiplication and addition or two per
// element.
#include <cmath>

#include "kernels/cuda/channel_terms.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/norm_sums.h"
#include "kernels/cuda/plane_sums.h"

namespace holdfast::cuda {
namespace {

PlaneLayout LayoutOf(const TensorSpec& spec) {
  PlaneLayout l;
  l.batch = spec.shape[0];
  l.channels = spec.shape[1];
  for (int d = 2; d < spec.rank(); ++d) l.inner *= spec.shape[d];
  return l;
}

// Mean and variance as results and as the numbers that x is scaled by.
template <typename S>
struct ForwardTerms {
  using T = ComputeOf<S>;

  const S *weight, *bias;
  double eps;
  S *means, *vars;
  T* terms;

  HOLDFAST_HD void Write(int64_t c, T mean, T var) const {
    means[c] = Convert<S>(mean);
    vars[c] = Convert<S>(var);
    const T rstd = static_cast<T>(1 / std::sqrt(var + eps));
    const T shift = bias == nullptr ? T(0) : Convert<T>(bias[c]);
    StoreTerms<T>(terms, c,
                  {mean, T(0), rstd * ConvertedFactor<T>(weight, c), shift});
  }
};

template <typename S>
absl::Status BatchNorm(KernelContext& context, const PlaneLayout& l, const S* x,
                       const S* running_mean, const S* running_var,
                       const ForwardTerms<S>& terms, S* out) {
  using T = ComputeOf<S>;
  absl::Status s;
  if (running_mean != nullptr) {
    s = ForEach(context, l.channels, [=] HOLDFAST_LAMBDA(int64_t c) {
      terms.Write(c, Convert<T>(running_mean[c]), Convert<T>(running_var[c]));
    });
  } else {
    const double count = static_cast<double>(l.count());
    s = SumChannels(context, l, MomentsOfChannel<S>{{x}},
                    [=] HOLDFAST_LAMBDA(int64_t c, Moments m) {
                      terms.Write(c, static_cast<T>(m.mean),
                                  static_cast<T>(m.squares / count));
                    });
  }
  if (!s.ok()) return s;
  return ApplyTerms<TermsOf::kX, S>(context, l, {terms.terms, nullptr, x, out});
}

// Adds up g and g (x - mean).
template <typename S>
struct GradientSums : SumsOfTwo<S> {
  using T = ComputeOf<S>;
  struct State {
    RunningSums<T> sums;
    T mean;
  };
  const S* means;

  GradientSums(const S* g, const S* x, const S* mean)
      : SumsOfTwo<S>{{g, x}}, means(mean) {}

  HOLDFAST_HD State Start(int64_t channel) const {
    return {{}, Convert<T>(means[channel])};
  }
  HOLDFAST_HD void Adjust(const State& state, int64_t, int64_t,
                          T (&v)[2]) const {
    v[1] = v[0] * (v[1] - state.mean);
  }
};

// The gradients of weight and bias as results, and the numbers that the input's
// gradient is made of.
template <typename S>
struct BackwardTerms {
  using T = ComputeOf<S>;

  const S *weight, *means, *vars;
  double eps, count;
  bool training;
  S *weight_grad, *bias_grad;
  T* terms;

  HOLDFAST_HD void Write(int64_t c, TwoSums sums) const {
    const double rstd = 1 / std::sqrt(Convert<T>(vars[c]) + eps);
    const double scale = rstd * ConvertedFactor<T>(weight, c);
    const double product = sums.second * rstd;
    weight_grad[c] = Convert<S>(static_cast<T>(product));
    bias_grad[c] = Convert<S>(static_cast<T>(sums.first));
    if (training) {
      StoreTerms<T>(terms, c,
                    {Convert<T>(means[c]), static_cast<T>(scale),
                     static_cast<T>(-product / count * rstd * scale),
                     static_cast<T>(-sums.first / count * scale)});
    } else {
      // Of g alone, in x's place; -0 leaves the sign of a zero.
      StoreTerms<T>(terms, c, {T(0), T(0), static_cast<T>(scale), -T(0)});
    }
  }
};

template <typename S>
absl::Status BatchNormBackward(KernelContext& context, const PlaneLayout& l,
                               const S* g, const S* x,
                               const BackwardTerms<S>& terms, S* out) {
  absl::Status s = SumChannels(
      context, l, GradientSums<S>(g, x, terms.means),
      [=] HOLDFAST_LAMBDA(int64_t c, TwoSums sums) { terms.Write(c, sums); });
  if (!s.ok()) return s;
  if (terms.training) {
    return ApplyTerms<TermsOf::kBoth, S>(context, l, {terms.terms, g, x, out});
  }
  return ApplyTerms<TermsOf::kX, S>(context, l, {terms.terms, nullptr, g, out});
}

}  // namespace

HOLDFAST_CUDA_KERNEL(batch_norm) {
  const TensorSpec& spec = *inputs[0].spec;
  const PlaneLayout l = LayoutOf(spec);
  ContiguousOperands<6> in;
  absl::Status s = in.Make(context, inputs, spec.dtype);
  if (!s.ok()) return s;
  return DispatchStoredFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using S = typename decltype(tag)::type;
    auto* terms = ScratchOf<ComputeOf<S>>(context, 4 * l.channels);
    if (terms == nullptr) return NoScratch();
    return BatchNorm<S>(context, l, in.as<S>(0), in.as<S>(3), in.as<S>(4),
                        {in.as<S>(1), in.as<S>(2), attrs.Float("eps"),
                         outputs[1].as<S>(), outputs[2].as<S>(), terms},
                        outputs[0].as<S>());
  });
}

HOLDFAST_CUDA_KERNEL(batch_norm_backward) {
  const TensorSpec& spec = *inputs[1].spec;
  const PlaneLayout l = LayoutOf(spec);
  ContiguousOperands<6> in;
  absl::Status s = in.Make(context, inputs, spec.dtype);
  if (!s.ok()) return s;
  return DispatchStoredFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using S = typename decltype(tag)::type;
    auto* terms = ScratchOf<ComputeOf<S>>(context, 4 * l.channels);
    if (terms == nullptr) return NoScratch();
    return BatchNormBackward<S>(
        context, l, in.as<S>(0), in.as<S>(1),
        {in.as<S>(2), in.as<S>(3), in.as<S>(4), attrs.Float("eps"),
         static_cast<double>(l.count()), attrs.Bool("training"),
         outputs[1].as<S>(), outputs[2].as<S>(), terms},
        outputs[0].as<S>());
  });
}

}  // namespace holdfast::cuda
