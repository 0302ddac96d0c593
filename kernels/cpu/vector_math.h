// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Lets the compiler vectorise calls of <cmath> functions: the C library has
// SIMD forms of them (libmvec, at most 4 ulp off), which it otherwise offers
// only together with -ffast-math. Include before the loops; nothing to call.
#ifndef HOLDFAST_KERNELS_CPU_VECTOR_MATH_H_
#define HOLDFAST_KERNELS_CPU_VECTOR_MATH_H_

#include <cmath>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 35)
#define HOLDFAST_SIMD_MATH(name)                                     \
  __attribute__((simd("notinbranch"))) double name(double) noexcept; \
  __attribute__((simd("notinbranch"))) float name##f(float) noexcept;
#define HOLDFAST_SIMD_MATH_2(name)                                           \
  __attribute__((simd("notinbranch"))) double name(double, double) noexcept; \
  __attribute__((simd("notinbranch"))) float name##f(float, float) noexcept;
extern "C" {
HOLDFAST_SIMD_MATH(exp)
HOLDFAST_SIMD_MATH(expm1)
HOLDFAST_SIMD_MATH(log)
HOLDFAST_SIMD_MATH(log1p)
HOLDFAST_SIMD_MATH(sin)
HOLDFAST_SIMD_MATH(cos)
HOLDFAST_SIMD_MATH(tanh)
HOLDFAST_SIMD_MATH(erf)
HOLDFAST_SIMD_MATH(erfc)
HOLDFAST_SIMD_MATH(tan)
HOLDFAST_SIMD_MATH(asin)
HOLDFAST_SIMD_MATH(acos)
HOLDFAST_SIMD_MATH(atan)
HOLDFAST_SIMD_MATH(sinh)
HOLDFAST_SIMD_MATH(cosh)
HOLDFAST_SIMD_MATH(asinh)
HOLDFAST_SIMD_MATH(acosh)
HOLDFAST_SIMD_MATH(atanh)
HOLDFAST_SIMD_MATH(exp2)
HOLDFAST_SIMD_MATH(log10)
HOLDFAST_SIMD_MATH_2(pow)
HOLDFAST_SIMD_MATH_2(atan2)
HOLDFAST_SIMD_MATH_2(hypot)
}
#undef HOLDFAST_SIMD_MATH
#undef HOLDFAST_SIMD_MATH_2
#endif
#endif

#endif  // HOLDFAST_KERNELS_CPU_VECTOR_MATH_H_
