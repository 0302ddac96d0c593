// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
// Optimizer steps over all parameters at once: one pass over each element, the
// elements of all parameters split over the threads as one range.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/optim_blocks.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {
namespace {

template <typename T>
struct SgdStep {
  T lr, momentum, dampening, weight_decay;
  bool nesterov, maximize, first_step;
};

// `buffer` is null without momentum. The compiler hoists the choices out of the
// loops.
template <typename T>
struct SgdBody {
  static HOLDFAST_INLINE void Run(const SgdStep<T>* step, T* param,
                                  const T* grad, T* buffer, int64_t n) {
    const SgdStep<T> s = *step;
    const T sign = s.maximize ? T(-1) : T(1);
    const T keep = T(1) - s.dampening;
    if (buffer == nullptr) {
      Update(s, param, n, [&](int64_t i, T p) HOLDFAST_INLINE_LAMBDA {
        return Decayed(s, sign * grad[i], p);
      });
    } else if (s.first_step) {
      Update(s, param, n, [&](int64_t i, T p) HOLDFAST_INLINE_LAMBDA {
        const T g = Decayed(s, sign * grad[i], p);
        buffer[i] = g;
        return s.nesterov ? g + s.momentum * g : g;
      });
    } else {
      Update(s, param, n, [&](int64_t i, T p) HOLDFAST_INLINE_LAMBDA {
        const T g = Decayed(s, sign * grad[i], p);
        const T b = s.momentum * buffer[i] + keep * g;
        buffer[i] = b;
        return s.nesterov ? g + s.momentum * b : b;
      });
    }
  }

  // Without decay the product must not happen: 0 * inf is NaN.
  static HOLDFAST_INLINE T Decayed(const SgdStep<T>& s, T g, T p) {
    return s.weight_decay != T(0) ? g + s.weight_decay * p : g;
  }

  template <typename Direction>
  static HOLDFAST_INLINE void Update(const SgdStep<T>& s, T* param, int64_t n,
                                     Direction direction) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T p = param[i];
      param[i] = p - s.lr * direction(i, p);
    }
  }
};

template <typename T>
struct AdamStep {
  T beta1, beta2, keep1, keep2;  // keep = 1 - beta
  T step_size, root_correction;  // lr / bias correction 1; sqrt(the 2nd)
  T eps, weight_decay, decoupled_decay;  // the last: a factor, 1 without
  bool maximize;
};

template <typename T>
struct AdamBody {
  static HOLDFAST_INLINE void Run(const AdamStep<T>* step, T* param,
                                  const T* grad, T* mean, T* square,
                                  int64_t n) {
    const AdamStep<T> s = *step;
    const T sign = s.maximize ? T(-1) : T(1);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T p = param[i] * s.decoupled_decay;
      T g = sign * grad[i];
      if (s.weight_decay != T(0)) g = g + s.weight_decay * p;
      const T m = s.beta1 * mean[i] + s.keep1 * g;
      const T v = s.beta2 * square[i] + s.keep2 * g * g;
      mean[i] = m;
      square[i] = v;
      const T denominator = std::sqrt(v) / s.root_correction + s.eps;
      param[i] = p - s.step_size * (m / denominator);
    }
  }
};

template <typename T>
SgdStep<T> MakeSgdStep(const Attrs& attrs) {
  SgdStep<T> s;
  s.lr = static_cast<T>(attrs.Float("lr"));
  s.momentum = static_cast<T>(attrs.Float("momentum"));
  s.dampening = static_cast<T>(attrs.Float("dampening"));
  s.weight_decay = static_cast<T>(attrs.Float("weight_decay"));
  s.nesterov = attrs.Bool("nesterov");
  s.maximize = attrs.Bool("maximize");
  s.first_step = attrs.Bool("first_step");
  return s;
}

// Corrections in double: 1 - beta^step is a difference of near numbers.
template <typename T>
AdamStep<T> MakeAdamStep(const Attrs& attrs) {
  const double lr = attrs.Float("lr");
  const double beta1 = attrs.Float("beta1"), beta2 = attrs.Float("beta2");
  const double decay = attrs.Float("weight_decay");
  const bool decoupled = attrs.Bool("decoupled");
  const double step = static_cast<double>(attrs.Int("step"));
  AdamStep<T> s;
  s.beta1 = static_cast<T>(beta1);
  s.beta2 = static_cast<T>(beta2);
  s.keep1 = static_cast<T>(1 - beta1);
  s.keep2 = static_cast<T>(1 - beta2);
  s.step_size = static_cast<T>(lr / (1 - std::pow(beta1, step)));
  s.root_correction = static_cast<T>(std::sqrt(1 - std::pow(beta2, step)));
  s.eps = static_cast<T>(attrs.Float("eps"));
  s.weight_decay = decoupled ? T(0) : static_cast<T>(decay);
  s.decoupled_decay = decoupled ? static_cast<T>(1 - lr * decay) : T(1);
  s.maximize = attrs.Bool("maximize");
  return s;
}

}  // namespace

HOLDFAST_CPU_KERNEL(sgd) {
  const auto step32 = MakeSgdStep<float>(attrs);
  const auto step64 = MakeSgdStep<double>(attrs);
  const bool momentum = attrs.Float("momentum") != 0;
  auto run = [&](const auto& step, const StridedLoop& walk, int64_t at,
                 int64_t n) {
    using T = std::decay_t<decltype(step.lr)>;
    BlockBuffer buffer;
    const T* grad =
        static_cast<const T*>(walk.Load(1, kDTypeOf<T>, at, n, &buffer));
    Updated<T> param(walk, 0, at, n);
    if (!momentum) {
      Vectorised<SgdBody<T>>(&step, param.data, grad, static_cast<T*>(nullptr),
                             n);
    } else {
      Updated<T> velocity(walk, 2, at, n);
      Vectorised<SgdBody<T>>(&step, param.data, grad, velocity.data, n);
      velocity.Store();
    }
    param.Store();
  };
  // Without momentum the third list is the gradients again: it is walked, but
  // neither read nor written.
  ForEachParameterBlock<3>(
      context, inputs, 3,
      [&](const StridedLoop& walk, DType dtype, int64_t at, int64_t n) {
        if (dtype == DType::kFloat32) {
          run(step32, walk, at, n);
        } else {
          run(step64, walk, at, n);
        }
      });
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(adam) {
  const auto step32 = MakeAdamStep<float>(attrs);
  const auto step64 = MakeAdamStep<double>(attrs);
  auto run = [&](const auto& step, const StridedLoop& walk, int64_t at,
                 int64_t n) {
    using T = std::decay_t<decltype(step.eps)>;
    BlockBuffer buffer;
    const T* grad =
        static_cast<const T*>(walk.Load(1, kDTypeOf<T>, at, n, &buffer));
    Updated<T> param(walk, 0, at, n), mean(walk, 2, at, n),
        square(walk, 3, at, n);
    Vectorised<AdamBody<T>>(&step, param.data, grad, mean.data, square.data, n);
    param.Store();
    mean.Store();
    square.Store();
  };
  ForEachParameterBlock<4>(
      context, inputs, 4,
      [&](const StridedLoop& walk, DType dtype, int64_t at, int64_t n) {
        if (dtype == DType::kFloat32) {
          run(step32, walk, at, n);
        } else {
          run(step64, walk, at, n);
        }
      });
  return absl::OkStatus();
}

}  // namespace holdfast::cpu
