// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The optimizers after SGD and Adam (optimizer_step), a functor each, for every
// device. The scalars that depend on the step's number come ready from the
// client, in double. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_OPTIM_STEPS_H_
#define HOLDFAST_KERNELS_OPTIM_STEPS_H_

#include <cmath>
#include <string>

#include "ops/attrs.h"
#include "ops/host_device.h"

namespace holdfast {

template <typename T>
struct OptimStep {
  T step_size, beta1, beta2, keep1, keep2;  // keep = 1 - beta
  T eps, momentum, correction, shrink, weight_decay, sign;
};

// Each: the parameter after the step, from the parameter p, its gradient g
// (with decay) and its states a, b, c, which it updates. kStates: which it has.

// Duchi, Hazan & Singer 2011. a: sum of squares.
struct Adagrad {
  static constexpr int kStates = 0b001;
  template <typename T>
  static HOLDFAST_HD T Next(const OptimStep<T>& s, T p, T g, T& a, T&, T&) {
    a = a + g * g;
    return p - s.step_size * (g / (std::sqrt(a) + s.eps));
  }
};

// Zeiler 2012. a: mean of squares, b: mean of squared steps.
struct Adadelta {
  static constexpr int kStates = 0b011;
  template <typename T>
  static HOLDFAST_HD T Next(const OptimStep<T>& s, T p, T g, T& a, T& b, T&) {
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
  static HOLDFAST_HD T Next(const OptimStep<T>& s, T p, T g, T& a, T& b, T&) {
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
  static HOLDFAST_HD T Next(const OptimStep<T>& s, T p, T g, T& a, T& b, T&) {
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
  static HOLDFAST_HD T Next(const OptimStep<T>& s, T p, T g, T& a, T& b, T&) {
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
  static HOLDFAST_HD T Next(const OptimStep<T>& s, T p, T g, T& a, T& b, T& c) {
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
  static HOLDFAST_HD T Next(const OptimStep<T>& s, T p, T g, T& a, T& b, T&) {
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
  static HOLDFAST_HD T Next(const OptimStep<T>& s, T p, T g, T& a, T&, T&) {
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
  static HOLDFAST_HD T Next(const OptimStep<T>& s, T p, T g, T& a, T& b, T& c) {
    a = s.beta1 * a + s.keep1 * g;
    b = s.beta2 * b + s.keep2 * g * g;
    c = b > c ? b : c;
    const T root = std::sqrt(c) / s.correction + s.eps;
    return p * s.shrink - s.step_size * (a / root);
  }
};

template <typename T>
OptimStep<T> MakeOptimStep(const Attrs& attrs) {
  const auto value = [&](const char* name) {
    return static_cast<T>(attrs.Float(name));
  };
  OptimStep<T> s;
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

// run(algorithm) for the one that the call names.
template <typename F>
auto DispatchAlgorithm(const Attrs& attrs, F&& run) {
  const std::string& name = attrs.Str("algorithm");
  if (name == "adagrad") return run(Adagrad());
  if (name == "adadelta") return run(Adadelta());
  if (name == "adamax") return run(Adamax());
  if (name == "nadam") return run(NAdam());
  if (name == "radam") return run(RAdam());
  if (name == "rprop") return run(Rprop());
  if (name == "asgd") return run(Asgd());
  if (name == "amsgrad") return run(AmsGrad());
  const bool momentum = attrs.Float("momentum") > 0;
  if (attrs.Bool("centered")) {
    return momentum ? run(RmsProp<true, true>()) : run(RmsProp<false, true>());
  }
  return momentum ? run(RmsProp<true, false>()) : run(RmsProp<false, false>());
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_OPTIM_STEPS_H_
