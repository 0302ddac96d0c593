// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// optimizer_step: the algorithms of kernels/optim_steps.h in vectorised blocks.
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/optim_blocks.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/optim_steps.h"

namespace holdfast::cpu {
namespace {

template <typename Algorithm, typename T>
struct Body {
  static HOLDFAST_INLINE void Run(const OptimStep<T>* step, T* param,
                                  const T* grad, T* a, T* b, T* c, int64_t n) {
    const OptimStep<T> s = *step;
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

template <typename Algorithm, typename T>
void RunBlock(const OptimStep<T>& step, const StridedLoop& walk, int64_t at,
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
  const auto step32 = MakeOptimStep<float>(attrs);
  const auto step64 = MakeOptimStep<double>(attrs);
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
  return DispatchAlgorithm(attrs, [&](auto algorithm) {
    return RunStep<decltype(algorithm)>(context, attrs, inputs);
  });
}

}  // namespace holdfast::cpu
