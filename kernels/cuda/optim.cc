// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizer steps over all parameters at once.
#include <cmath>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/optim_lists.h"
#include "kernels/optim_steps.h"

namespace holdfast::cuda {
namespace {

template <typename T>
struct SgdUpdate {
  T lr, momentum, keep, weight_decay, sign;
  bool use_momentum, nesterov, first_step;

  HOLDFAST_HD void operator()(T* param, T grad, T* buffer, T*, T*) const {
    const T p = *param;
    T g = sign * grad;
    // Without decay the product must not happen: 0 * inf is NaN.
    if (weight_decay != T(0)) g = g + weight_decay * p;
    if (use_momentum) {
      const T b = first_step ? g : momentum * *buffer + keep * g;
      *buffer = b;
      g = nesterov ? g + momentum * b : b;
    }
    *param = p - lr * g;
  }
};

template <typename T>
struct AdamUpdate {
  T beta1, beta2, keep1, keep2, step_size, root_correction, eps, weight_decay;
  T decoupled_decay, sign;

  HOLDFAST_HD void operator()(T* param, T grad, T* mean, T* square, T*) const {
    const T p = *param * decoupled_decay;
    T g = sign * grad;
    if (weight_decay != T(0)) g = g + weight_decay * p;
    const T m = beta1 * *mean + keep1 * g;
    const T v = beta2 * *square + keep2 * g * g;
    *mean = m;
    *square = v;
    *param = p - step_size * (m / (std::sqrt(v) / root_correction + eps));
  }
};

template <typename Algorithm, typename T>
struct AlgorithmUpdate {
  OptimStep<T> step;

  HOLDFAST_HD void operator()(T* param, T grad, T* a, T* b, T* c) const {
    const T p = *param;
    T g = step.sign * grad;
    if (step.weight_decay != T(0)) g = g + step.weight_decay * p;
    T x = *a, y = *b, z = *c;
    *param = Algorithm::Next(step, p, g, x, y, z);
    if constexpr ((Algorithm::kStates & 1) != 0) *a = x;
    if constexpr ((Algorithm::kStates & 2) != 0) *b = y;
    if constexpr ((Algorithm::kStates & 4) != 0) *c = z;
  }
};

template <typename T>
absl::Status Sgd(KernelContext& context, const Attrs& attrs,
                 absl::Span<const TensorView> inputs) {
  SgdUpdate<T> update;
  update.lr = static_cast<T>(attrs.Float("lr"));
  update.momentum = static_cast<T>(attrs.Float("momentum"));
  update.keep = T(1) - static_cast<T>(attrs.Float("dampening"));
  update.weight_decay = static_cast<T>(attrs.Float("weight_decay"));
  update.sign = attrs.Bool("maximize") ? T(-1) : T(1);
  update.use_momentum = attrs.Float("momentum") != 0;
  update.nesterov = attrs.Bool("nesterov");
  update.first_step = attrs.Bool("first_step");
  return UpdateAllOf<T>(context, inputs, 3, update);
}

// Corrections in double: 1 - beta^step is a difference of near numbers.
template <typename T>
absl::Status Adam(KernelContext& context, const Attrs& attrs,
                  absl::Span<const TensorView> inputs) {
  const double lr = attrs.Float("lr"), decay = attrs.Float("weight_decay");
  const double beta1 = attrs.Float("beta1"), beta2 = attrs.Float("beta2");
  const double step = static_cast<double>(attrs.Int("step"));
  const bool decoupled = attrs.Bool("decoupled");
  AdamUpdate<T> update;
  update.beta1 = static_cast<T>(beta1);
  update.beta2 = static_cast<T>(beta2);
  update.keep1 = static_cast<T>(1 - beta1);
  update.keep2 = static_cast<T>(1 - beta2);
  update.step_size = static_cast<T>(lr / (1 - std::pow(beta1, step)));
  update.root_correction = static_cast<T>(std::sqrt(1 - std::pow(beta2, step)));
  update.eps = static_cast<T>(attrs.Float("eps"));
  update.weight_decay = decoupled ? T(0) : static_cast<T>(decay);
  update.decoupled_decay = decoupled ? static_cast<T>(1 - lr * decay) : T(1);
  update.sign = attrs.Bool("maximize") ? T(-1) : T(1);
  return UpdateAllOf<T>(context, inputs, 4, update);
}

template <typename Algorithm, typename T>
absl::Status Step(KernelContext& context, const Attrs& attrs,
                  absl::Span<const TensorView> inputs) {
  const AlgorithmUpdate<Algorithm, T> update = {MakeOptimStep<T>(attrs)};
  return UpdateAllOf<T>(context, inputs, 5, update);
}

}  // namespace

HOLDFAST_CUDA_KERNEL(sgd) {
  absl::Status s = Sgd<float>(context, attrs, inputs);
  return s.ok() ? Sgd<double>(context, attrs, inputs) : s;
}

HOLDFAST_CUDA_KERNEL(adam) {
  absl::Status s = Adam<float>(context, attrs, inputs);
  return s.ok() ? Adam<double>(context, attrs, inputs) : s;
}

HOLDFAST_CUDA_KERNEL(optimizer_step) {
  return DispatchAlgorithm(attrs, [&](auto algorithm) -> absl::Status {
    using Algorithm = decltype(algorithm);
    absl::Status s = Step<Algorithm, float>(context, attrs, inputs);
    return s.ok() ? Step<Algorithm, double>(context, attrs, inputs) : s;
  });
}

}  // namespace holdfast::cuda
