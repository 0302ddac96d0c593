// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// One loop, compiled for several instruction sets, the best one picked at run
// time: Vectorised<Body>(args...) calls Body::Run(args...), which must be
// HOLDFAST_INLINE so that it takes on the target of the function around it.
// Write the loops plainly and let the compiler vectorise them. Where it will
// not reorder (float sums, maxima with NaN), keep an array of kLanes partial
// results and loop over it innermost: GCC holds such an array in registers.
// Its vector extensions do as well up to 256 bits; 512-bit comparisons become
// scalar code.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CPU_VECTORISED_H_
#define HOLDFAST_KERNELS_CPU_VECTORISED_H_

#include <cstdint>

#define HOLDFAST_INLINE inline __attribute__((always_inline))
// For lambdas: [&](int i) HOLDFAST_INLINE_LAMBDA { ... }.
#define HOLDFAST_INLINE_LAMBDA __attribute__((always_inline))

namespace holdfast::cpu {

enum class SimdLevel { kBaseline, kAvx2, kAvx512 };

inline SimdLevel BestSimdLevel() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return SimdLevel::kAvx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return SimdLevel::kAvx2;
  }
  return SimdLevel::kBaseline;
}
// A plain variable, initialised before main (no kernel runs earlier): cheaper
// to read than a guarded static.
inline const SimdLevel kSimdLevel = BestSimdLevel();

template <typename Body, typename... Args>
__attribute__((noinline,
               target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi,bmi2,"
                      "prefer-vector-width=512"))) auto
RunAvx512(Args... args) {
  return Body::Run(args...);
}

template <typename Body, typename... Args>
__attribute__((noinline, target("avx2,fma,bmi,bmi2"))) auto RunAvx2(
    Args... args) {
  return Body::Run(args...);
}

template <typename Body, typename... Args>
__attribute__((noinline)) auto RunBaseline(Args... args) {
  return Body::Run(args...);
}

template <typename Body, typename... Args>
inline auto Vectorised(Args... args) {
  if (kSimdLevel == SimdLevel::kAvx512) {
    return RunAvx512<Body, Args...>(args...);
  }
  if (kSimdLevel == SimdLevel::kAvx2) return RunAvx2<Body, Args...>(args...);
  return RunBaseline<Body, Args...>(args...);
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_VECTORISED_H_
