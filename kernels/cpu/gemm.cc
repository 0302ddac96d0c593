// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// b is copied into panels of kCols columns, a into tiles of kRows rows, so that
// the inner loop reads both in order whatever their strides; it keeps a
// kRows x kCols tile of c in registers.
#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"

namespace holdfast::cpu {
namespace {

// Depth of the blocks that k is cut into: a panel then fits in L1 or L2.
constexpr int64_t kDepth = 256;
constexpr int kRows = 6;
// Panels are sized for the widest registers; narrower ones take a panel in
// several steps.
template <typename T>
inline constexpr int kCols = 128 / sizeof(T);

// One block of depth `k` that starts at depth `p0`, its b packed.
template <typename T>
struct GemmBlock {
  const GemmCall<T>* call;
  const T* panels;
  int64_t p0, k;
  bool first;  // c is to be written, not added to
};

template <typename T>
struct PackPanelsBody {
  static HOLDFAST_INLINE int Run(const GemmCall<T>* call, int64_t p0, int64_t k,
                                 int64_t begin, int64_t end, T* panels) {
    constexpr int kN = kCols<T>;
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t j0 = panel * kN;
      const int64_t cols = std::min<int64_t>(kN, call->n - j0);
      const T* b = call->b + p0 * call->b_row + j0 * call->b_col;
      T* out = panels + panel * kN * k;
      if (call->b_col == 1 && cols == kN) {
        for (int64_t p = 0; p < k; ++p) {
          for (int j = 0; j < kN; ++j) out[p * kN + j] = b[j];
          b += call->b_row;
        }
        continue;
      }
      if (cols < kN) std::fill(out, out + kN * k, T{0});
      // Read along the short stride.
      for (int64_t j = 0; j < cols; ++j) {
        const T* column = b + j * call->b_col;
        for (int64_t p = 0; p < k; ++p) {
          out[p * kN + j] = column[p * call->b_row];
        }
      }
    }
    return 0;
  }
};

// kBytes: width of the registers of the target it is compiled for.
template <typename T, int kBytes>
struct GemmTilesBody {
  typedef T V
      __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
  static constexpr int kLanes = kBytes / sizeof(T);
  static constexpr int kVecs = 2;
  static constexpr int kStep = kVecs * kLanes;  // columns done at a time

  // Rows [tile * kRows, ...) for tiles [begin, end), panels [from, to).
  static HOLDFAST_INLINE int Run(const GemmBlock<T>* block, int64_t begin,
                                 int64_t end, int64_t from, int64_t to) {
    const GemmCall<T>& call = *block->call;
    const int64_t k = block->k;
    T packed[kRows * kDepth];
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t i0 = tile * kRows;
      const int64_t rows = std::min<int64_t>(kRows, call.m - i0);
      const T* a = call.a + i0 * call.a_row + block->p0 * call.a_col;
      if (rows < kRows) std::fill(packed, packed + kRows * k, T{0});
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t p = 0; p < k; ++p) {
          packed[p * kRows + i] = a[i * call.a_row + p * call.a_col];
        }
      }
      for (int64_t panel = from; panel < to; ++panel) {
        for (int j = 0; j < kCols<T>; j += kStep) {
          const int64_t j0 = panel * kCols<T> + j;
          if (j0 >= call.n) break;
          Tile(*block, packed, block->panels + panel * kCols<T> * k + j, i0,
               rows, j0);
        }
      }
    }
    return 0;
  }

  static HOLDFAST_INLINE void Tile(const GemmBlock<T>& block, const T* a,
                                   const T* b, int64_t i0, int64_t rows,
                                   int64_t j0) {
    const GemmCall<T>& call = *block.call;
    V acc[kRows][kVecs] = {};
    for (int64_t p = 0; p < block.k; ++p) {
      V bv[kVecs];
      for (int v = 0; v < kVecs; ++v) {
        bv[v] = *reinterpret_cast<const V*>(b + p * kCols<T> + v * kLanes);
      }
      for (int i = 0; i < kRows; ++i) {
        for (int v = 0; v < kVecs; ++v) {
          acc[i][v] += bv[v] * a[p * kRows + i];
        }
      }
    }
    const int64_t cols = std::min<int64_t>(kStep, call.n - j0);
    T* c = call.c + i0 * call.c_row + j0;
    const bool add = call.accumulate || !block.first;
    if (rows == kRows && cols == kStep && call.bias == nullptr) {
      for (int i = 0; i < kRows; ++i) {
        for (int v = 0; v < kVecs; ++v) {
          V* out = reinterpret_cast<V*>(c + i * call.c_row + v * kLanes);
          *out = add ? *out + acc[i][v] : acc[i][v];
        }
      }
      return;
    }
    T tile[kRows][kStep];
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVecs; ++v) {
        *reinterpret_cast<V*>(&tile[i][v * kLanes]) = acc[i][v];
      }
    }
    const bool bias = call.bias != nullptr && block.first;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        T value = tile[i][j];
        if (bias) value += call.bias[(j0 + j) * call.bias_stride];
        T* out = c + i * call.c_row + j;
        *out = add ? *out + value : value;
      }
    }
  }
};

template <typename T>
void RunTiles(const GemmBlock<T>* block, int64_t begin, int64_t end,
              int64_t from, int64_t to) {
  if (kSimdLevel == SimdLevel::kAvx512) {
    RunAvx512<GemmTilesBody<T, 64>>(block, begin, end, from, to);
  } else if (kSimdLevel == SimdLevel::kAvx2) {
    RunAvx2<GemmTilesBody<T, 32>>(block, begin, end, from, to);
  } else {
    RunBaseline<GemmTilesBody<T, 16>>(block, begin, end, from, to);
  }
}

template <typename T>
struct TinyGemmBody {
  static HOLDFAST_INLINE int Run(const GemmCall<T>* call_pointer) {
    const GemmCall<T>& call = *call_pointer;
    switch (call.n) {
      case 1:
        return FewColumns<1>(call);
      case 2:
        return FewColumns<2>(call);
      case 3:
        return FewColumns<3>(call);
      case 4:
        return FewColumns<4>(call);
      default:
        return AnyColumns(call);
    }
  }

  // A row of c stays in registers: of a batch of rotations, say, the loops
  // would cost more than the sums.
  template <int kN>
  static HOLDFAST_INLINE int FewColumns(const GemmCall<T>& call) {
    for (int64_t i = 0; i < call.m; ++i) {
      const T* a = call.a + i * call.a_row;
      T* c = call.c + i * call.c_row;
      T sums[kN] = {};
      for (int64_t p = 0; p < call.k; ++p) {
        const T factor = a[p * call.a_col];
        const T* b = call.b + p * call.b_row;
        for (int j = 0; j < kN; ++j) sums[j] += factor * b[j * call.b_col];
      }
      for (int j = 0; j < kN; ++j) {
        if (call.bias != nullptr) sums[j] += call.bias[j * call.bias_stride];
        c[j] = call.accumulate ? c[j] + sums[j] : sums[j];
      }
    }
    return 0;
  }

  static HOLDFAST_INLINE int AnyColumns(const GemmCall<T>& call) {
    for (int64_t i = 0; i < call.m; ++i) {
      const T* a = call.a + i * call.a_row;
      T* c = call.c + i * call.c_row;
      if (call.b_col != 1) {
        for (int64_t j = 0; j < call.n; ++j) {
          const T* b = call.b + j * call.b_col;
          T sum = 0;
          for (int64_t p = 0; p < call.k; ++p) {
            sum += a[p * call.a_col] * b[p * call.b_row];
          }
          if (call.bias != nullptr) sum += call.bias[j * call.bias_stride];
          c[j] = call.accumulate ? c[j] + sum : sum;
        }
        continue;
      }
      if (!call.accumulate) std::fill(c, c + call.n, T{0});
      for (int64_t p = 0; p < call.k; ++p) {
        const T factor = a[p * call.a_col];
        const T* b = call.b + p * call.b_row;
        for (int64_t j = 0; j < call.n; ++j) c[j] += factor * b[j];
      }
      if (call.bias != nullptr) {
        for (int64_t j = 0; j < call.n; ++j) {
          c[j] += call.bias[j * call.bias_stride];
        }
      }
    }
    return 0;
  }
};

template <typename T>
using DotTotal = std::conditional_t<std::is_floating_point_v<T>, double, T>;

// Adds the terms from `begin` to `k`. Floats in blocks short enough for float's
// precision, the blocks in double.
template <typename T>
struct DotBody {
  static HOLDFAST_INLINE int Run(const GemmCall<T>* call, int64_t begin,
                                 int64_t k, DotTotal<T>* sum) {
    using Total = DotTotal<T>;
    constexpr int kLanes = 256 / sizeof(T);
    constexpr int64_t kBlock = 32 * kLanes;
    const T *a = call->a, *b = call->b;
    Total total = *sum;
    int64_t p = begin;
    if (call->a_col == 1 && call->b_row == 1) {
      while (p + kLanes <= k) {
        const int64_t end = std::min(k, p + kBlock);
        T lanes[kLanes] = {};
        for (; p + kLanes <= end; p += kLanes) {
          for (int j = 0; j < kLanes; ++j) lanes[j] += a[p + j] * b[p + j];
        }
        for (int j = 0; j < kLanes; ++j) total += lanes[j];
      }
    }
    for (; p < k; ++p) {
      total += static_cast<Total>(a[p * call->a_col]) *
               static_cast<Total>(b[p * call->b_row]);
    }
    *sum = total;
    return 0;
  }
};

}  // namespace

template <typename T>
void Dot(const KernelContext& context, const GemmCall<T>& call) {
  // A multiple of blocks: the sum is the same as in one go.
  constexpr int64_t kTerms = 1 << 20;
  DotTotal<T> sum = 0;
  for (int64_t p = 0; p < call.k; p += kTerms) {
    if (p > 0 && context.Stopped()) return;
    Vectorised<DotBody<T>>(&call, p, std::min(call.k, p + kTerms), &sum);
  }
  *call.c = static_cast<T>(sum);
}

template <typename T>
void TinyGemm(const GemmCall<T>& call) {
  Vectorised<TinyGemmBody<T>>(&call);
}

template <typename T>
size_t GemmWorkspaceBytes(int64_t n, int64_t k) {
  const int64_t panels = (n + kCols<T> - 1) / kCols<T>;
  return sizeof(T) * panels * kCols<T> * std::min(k, kDepth);
}

template <typename T>
void Gemm(const KernelContext& context, const GemmCall<T>& call,
          void* workspace) {
  if (call.m == 0 || call.n == 0) return;
  if (call.k == 0 || call.m * call.n <= kTinyGemm / call.k) {
    return TinyGemm(call);
  }
  T* packed = static_cast<T*>(workspace);
  const int64_t panels = (call.n + kCols<T> - 1) / kCols<T>;
  const int64_t tiles = (call.m + kRows - 1) / kRows;
  for (int64_t p0 = 0; p0 < call.k; p0 += kDepth) {
    const int64_t k = std::min(kDepth, call.k - p0);
    ParallelFor(context, panels, std::max<int64_t>(1, 32768 / (k * kCols<T>)),
                [&](int64_t b, int64_t e) {
                  Vectorised<PackPanelsBody<T>>(&call, p0, k, b, e, packed);
                });
    const GemmBlock<T> block = {&call, packed, p0, k, p0 == 0};
    // Multiplications below which a second thread does not pay.
    constexpr int64_t kWork = 65536;
    if (tiles >= panels) {
      const int64_t cost = k * kRows * panels * kCols<T>;
      ParallelFor(context, tiles, std::max<int64_t>(1, kWork / cost),
                  [&](int64_t b, int64_t e) {
                    RunTiles(&block, b, e, int64_t{0}, panels);
                  });
    } else {
      const int64_t cost = k * kCols<T> * tiles * kRows;
      ParallelFor(context, panels, std::max<int64_t>(1, kWork / cost),
                  [&](int64_t b, int64_t e) {
                    RunTiles(&block, int64_t{0}, tiles, b, e);
                  });
    }
  }
}

#define HOLDFAST_GEMM(T)                                       \
  template void Dot(const KernelContext&, const GemmCall<T>&); \
  template void TinyGemm(const GemmCall<T>&);                  \
  template size_t GemmWorkspaceBytes<T>(int64_t n, int64_t k); \
  template void Gemm(const KernelContext&, const GemmCall<T>&, void*)
HOLDFAST_GEMM(float);
HOLDFAST_GEMM(double);
HOLDFAST_GEMM(uint8_t);
HOLDFAST_GEMM(uint32_t);
HOLDFAST_GEMM(uint64_t);
#undef HOLDFAST_GEMM

}  // namespace holdfast::cpu
