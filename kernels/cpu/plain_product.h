// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of float32 and float64 matrices inside of other kernels: oneDNN's
// for float32, gemm.h's for float64 and for small ones.
// Thread-safety: one thread per PlainProduct.
#ifndef HOLDFAST_KERNELS_CPU_PLAIN_PRODUCT_H_
#define HOLDFAST_KERNELS_CPU_PLAIN_PRODUCT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/dnnl_engine.h"
#include "kernels/cpu/gemm.h"

namespace holdfast::cpu {

// A factor: rows of adjacent elements `ld` apart, or the transpose of that.
template <typename T>
struct Factor {
  const T* data;
  int64_t ld;
  bool transposed = false;
};

template <typename T>
struct PlainProduct {
  // Whose threads are used.
  const KernelContext& context;
  void* workspace = nullptr;

  // Bytes of workspace for products of at most such sizes; 0 for none.
  static size_t WorkspaceBytes(int64_t n, int64_t k) {
    return std::is_same_v<T, float> ? 0 : GemmWorkspaceBytes<T>(n, k);
  }

  // c [m, n] = a [m, k] b [k, n], or c + a b with `accumulate`; c's rows are
  // `ldc` apart.
  void Run(int64_t m, int64_t n, int64_t k, Factor<T> a, Factor<T> b,
           bool accumulate, T* c, int64_t ldc) const {
    if (m == 0 || n == 0) return;
    GemmCall<T> call;
    call.m = m;
    call.n = n;
    call.k = k;
    call.a = a.data;
    call.a_row = a.transposed ? 1 : a.ld;
    call.a_col = a.transposed ? a.ld : 1;
    call.b = b.data;
    call.b_row = b.transposed ? 1 : b.ld;
    call.b_col = b.transposed ? b.ld : 1;
    call.c = c;
    call.c_row = ldc;
    call.accumulate = accumulate;
    if (k == 0 || m * n <= kTinyGemm / k) return TinyGemm(call);
    if constexpr (std::is_same_v<T, float>) {
      UseDnnlThreads(context, m * n * k);
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k,
                 1.0f, a.data, a.ld, b.data, b.ld, accumulate ? 1.0f : 0.0f, c,
                 ldc);
    } else {
      Gemm(context, call, workspace);
    }
  }
};

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_PLAIN_PRODUCT_H_
