// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gemm: matrix products of the types oneDNN has none for (float64, integers),
// of strides it does not take, and of sizes too small to be worth its call.
// The result does not depend on the number of threads.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CPU_GEMM_H_
#define HOLDFAST_KERNELS_CPU_GEMM_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernel.h"

namespace holdfast::cpu {

// c[i][j] = sum over p of a[i][p] * b[p][j], plus bias[j] if there is one, plus
// c[i][j] if `accumulate`. Element strides may have any value; c's columns are
// adjacent.
template <typename T>
struct GemmCall {
  int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  int64_t a_row = 0, a_col = 0;
  const T* b = nullptr;
  int64_t b_row = 0, b_col = 0;
  T* c = nullptr;
  int64_t c_row = 0;
  const T* bias = nullptr;
  int64_t bias_stride = 1;
  bool accumulate = false;
};

// No more multiplications than this: TinyGemm is faster than anything that
// prepares its operands first.
inline constexpr int64_t kTinyGemm = 1024;

// Needs no workspace, uses one thread.
template <typename T>
void TinyGemm(const GemmCall<T>& call);

// One result: m == 1 and n == 1. Bias and `accumulate` are ignored.
template <typename T>
void Dot(const KernelContext& context, const GemmCall<T>& call);

template <typename T>
size_t GemmWorkspaceBytes(int64_t n, int64_t k);

// `workspace`: GemmWorkspaceBytes(call.n, call.k), 64-byte aligned.
// Instantiated for float, double, and the unsigned integers: signed ones give
// the same bits.
template <typename T>
void Gemm(const KernelContext& context, const GemmCall<T>& call,
          void* workspace);

// The context of a product that is one of many, each on one thread.
class SingleThread : public KernelContext {
 public:
  void* Scratch(size_t) override { return nullptr; }
};

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_GEMM_H_
