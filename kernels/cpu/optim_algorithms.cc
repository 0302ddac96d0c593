// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// optimizer_step: the algorithms after SGD and Adam, a functor each. The
// scalars that depend on the step's number come ready from the client, in
// double.
#include <cmath>
#include <string>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/optim_blocks.h"
#include "kernels/cpu/vectorised.h"

namespace holdfast {
namespace {

template <typename T>
struct Step {
  T step_size, beta1, beta2, keep1, keep2;  // keep = 1 - beta
  T eps, momentum, correction, shrink, weight_decay, sign;
};

// Each: the parameter after the step, from the parameter p, its gradient g
// (with decay) and its states a, b, c, which it updates. kStates: which it has.

// Duchi, Hazan & Singer 2011. a: sum of squares.
struct Adagrad {
  static constexpr int kStates = 0b001;
  template <typename T>
  static HOLDFAST_INLINE T Next(const Step<T>& s, T p, T g, T& a, T&, T&) {
    a = a + g * g;
    return p - s.step_size * (g / (std::sqrt(a) + s.eps));
  }
};

// Zeiler 2012. a: mean of squares, b: mean of squared steps.
struct Adadelta {
  static constexpr int kStates = 0b011;
  template <typename T>
  static HOLDFAST_INLINE T Next(const Step<T>& s, T p, T g, T& a, T& b, T&) {
    a = s.beta1 * a + s.keep1 * g * g;
    const T step = std::sqrt(b + s.eps) / std::sqrt(a + s.eps) * g;
    b = s.beta1 * b + s.keep1 * step * step;
    return p - s.step_size * step;
  }
};

// Kingma & Ba 2015, section 7. a: mean, b: decaying maximum.
struct Adamax {
  static constexpr int kStates = 0b011;
  template <typename T>
  static HOLDFAST_INLINE T Next(const Step<T>& s, T p, T g, T& a, T& b, T&) {
    a = s.beta1 * a + s.keep1 * g;
    const T decayed = s.beta2 * b, size = std::abs(g) + s.eps;
    b = decayed > size ? decayed : size;
    return p - s.step_size * (a / b);
  }
};

// Dozat 2016. a: mean, b: mean of squares; step_size weighs the gradient,
// momentum the mean.
struct NAdam {
  static constexpr int kStates = 0b011;
  template <typename T>
  static HOLDFAST_INLINE T Next(const Step<T>& s, T p, T g, T& a, T& b, T&) {
    a = s.beta1 * a + s.keep1 * g;
    b = s.beta2 * b + s.keep2 * g * g;
    const T root = std::sqrt(b) / s.correction + s.eps;
    return p - s.step_size * (g / root) - s.momentum * (a / root);
  }
};

// Liu et al. 2020. correction 0: too early to trust the variance.
struct RAdam {
  static constexpr int kStates = 0b011;
  template <typename T>
  static HOLDFAST_INLINE T Next(const Step<T>& s, T p, T g, T& a, T& b, T&) {
    a = s.beta1 * a + s.keep1 * g;
    b = s.beta2 * b + s.keep2 * g * g;
    const T adapted = s.correction / (std::sqrt(b) + s.eps);
    return p - s.step_size * a * (s.correction != T(0) ? adapted : T(1));
  }
};

// Hinton's lecture 6 of 2012. a: mean of squares, b: momentum, c: mean.
template <bool kMomentum, bool kCentered>
struct RmsProp {
  static constexpr int kStates = 1 | kMomentum << 1 | kCentered << 2;
  template <typename T>
  static HOLDFAST_INLINE T Next(const Step<T>& s, T p, T g, T& a, T& b, T& c) {
    a = s.beta1 * a + s.keep1 * g * g;
    T variance = a;
    if constexpr (kCentered) {
      c = s.beta1 * c + s.keep1 * g;
      variance = a - c * c;
    }
    const T scaled = g / (std::sqrt(variance) + s.eps);
    if constexpr (!kMomentum) return p - s.step_size * scaled;
    b = s.momentum * b + scaled;
    return p - s.step_size * b;
  }
};

// Riedmiller & Braun 1993. a: gradient before, b: step; beta1 shrinks and beta2
// grows it, within [step_size, momentum].
struct Rprop {
  static constexpr int kStates = 0b011;
  template <typename T>
  static HOLDFAST_INLINE T Next(const Step<T>& s, T p, T g, T& a, T& b, T&) {
    const T agrees = g * a;
    const T factor = agrees > T(0) ? s.beta2 : agrees < T(0) ? s.beta1 : T(1);
    T step = b * factor;
    step = step < s.step_size ? s.step_size : step;
    b = step > s.momentum ? s.momentum : step;
    const T used = agrees < T(0) ? T(0) : g;
    a = used;
    return p - (used > T(0) ? b : used < T(0) ? -b : T(0));
  }
};

// Polyak & Juditsky 1992. a: average of the parameters; momentum is its rate.
struct Asgd {
  static constexpr int kStates = 0b001;
  template <typename T>
  static HOLDFAST_INLINE T Next(const Step<T>& s, T p, T g, T& a, T&, T&) {
    const T next = p * s.shrink - s.step_size * g;
    a = s.momentum == T(1) ? next : a + (next - a) * s.momentum;
    return next;
  }
};

// Reddi, Kale & Kumar 2018. a: mean, b: mean of squares, c: the latter's
// maximum.
struct AmsGrad {
  static constexpr int kStates = 0b111;
  template <typename T>
  static HOLDFAST_INLINE T Next(const Step<T>& s, T p, T g, T& a, T& b, T& c) {
    a = s.beta1 * a + s.keep1 * g;
    b = s.beta2 * b + s.keep2 * g * g;
    c = b > c ? b : c;
    const T root = std::sqrt(c) / s.correction + s.eps;
    return p * s.shrink - s.step_size * (a / root);
  }
};

template <typename Algorithm, typename T>
struct Body {
  static HOLDFAST_INLINE void Run(const Step<T>* step, T* param, const T* grad,
                                  T* a, T* b, T* c, int64_t n) {
    const Step<T> s = *step;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T p = param[i];
      T g = s.sign * grad[i];
      // Without decay the product must not happen: 0 * inf is NaN.
      if (s.weight_decay != T(0)) g = g + s.weight_decay * p;
      T x = 0, y = 0, z = 0;
      if constexpr ((Algorithm::kStates & 1) != 0) x = a[i];
      if constexpr ((Algorithm::kStates & 2) != 0) y = b[i];
      if constexpr ((Algorithm::kStates & 4) != 0) z = c[i];
      param[i] = Algorithm::Next(s, p, g, x, y, z);
      if constexpr ((Algorithm::kStates & 1) != 0) a[i] = x;
      if constexpr ((Algorithm::kStates & 2) != 0) b[i] = y;
      if constexpr ((Algorithm::kStates & 4) != 0) c[i] = z;
    }
  }
};

template <typename T>
Step<T> MakeStep(const Attrs& attrs) {
  const auto value = [&](const char* name) {
    return static_cast<T>(attrs.Float(name));
  };
  Step<T> s;
  s.step_size = value("step_size");
  s.beta1 = value("beta1");
  s.beta2 = value("beta2");
  s.keep1 = static_cast<T>(1 - attrs.Float("beta1"));
  s.keep2 = static_cast<T>(1 - attrs.Float("beta2"));
  s.eps = value("eps");
  s.momentum = value("momentum");
  s.correction = value("correction");
  s.shrink = value("shrink");
  s.weight_decay = value("weight_decay");
  s.sign = attrs.Bool("maximize") ? T(-1) : T(1);
  return s;
}

template <typename Algorithm, typename T>
void RunBlock(const Step<T>& step, const StridedLoop& walk, int64_t at,
              int64_t n) {
  BlockBuffer buffer;
  const T* grad =
      static_cast<const T*>(walk.Load(1, kDTypeOf<T>, at, n, &buffer));
  Updated<T> param(walk, 0, at, n);
  // A state that is not there is the gradients again: not to be written.
  const auto run = [&](T* a, T* b, T* c) {
    Vectorised<Body<Algorithm, T>>(&step, param.data, grad, a, b, c, n);
  };
  Updated<T> a(walk, 2, at, n);
  if constexpr (Algorithm::kStates == 0b001) {
    run(a.data, nullptr, nullptr);
  } else if constexpr (Algorithm::kStates == 0b011) {
    Updated<T> b(walk, 3, at, n);
    run(a.data, b.data, nullptr);
    b.Store();
  } else if constexpr (Algorithm::kStates == 0b101) {
    Updated<T> c(walk, 4, at, n);
    run(a.data, nullptr, c.data);
    c.Store();
  } else {
    Updated<T> b(walk, 3, at, n), c(walk, 4, at, n);
    run(a.data, b.data, c.data);
    b.Store();
    c.Store();
  }
  a.Store();
  param.Store();
}

template <typename Algorithm>
absl::Status RunStep(const KernelContext& context, const Attrs& attrs,
                     absl::Span<const TensorView> inputs) {
  const auto step32 = MakeStep<float>(attrs);
  const auto step64 = MakeStep<double>(attrs);
  ForEachParameterBlock<5>(
      context, inputs, 5,
      [&](const StridedLoop& walk, DType dtype, int64_t at, int64_t n) {
        if (dtype == DType::kFloat32) {
          RunBlock<Algorithm>(step32, walk, at, n);
        } else {
          RunBlock<Algorithm>(step64, walk, at, n);
        }
      });
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_CPU_KERNEL(optimizer_step) {
  const std::string& name = attrs.Str("algorithm");
  if (name == "adagrad") return RunStep<Adagrad>(context, attrs, inputs);
  if (name == "adadelta") return RunStep<Adadelta>(context, attrs, inputs);
  if (name == "adamax") return RunStep<Adamax>(context, attrs, inputs);
  if (name == "nadam") return RunStep<NAdam>(context, attrs, inputs);
  if (name == "radam") return RunStep<RAdam>(context, attrs, inputs);
  if (name == "rprop") return RunStep<Rprop>(context, attrs, inputs);
  if (name == "asgd") return RunStep<Asgd>(context, attrs, inputs);
  if (name == "amsgrad") return RunStep<AmsGrad>(context, attrs, inputs);
  const bool momentum = attrs.Float("momentum") > 0;
  if (attrs.Bool("centered")) {
    return momentum ? RunStep<RmsProp<true, true>>(context, attrs, inputs)
                    : RunStep<RmsProp<false, true>>(context, attrs, inputs);
  }
  return momentum ? RunStep<RmsProp<true, false>>(context, attrs, inputs)
                  : RunStep<RmsProp<false, false>>(context, attrs, inputs);
}

}  // namespace holdfast
