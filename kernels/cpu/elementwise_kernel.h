// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of elementwise ops: a table of loops per op (one per
// instruction set and computation type, over contiguous memory) and the
// functions that run such a table over any views.
// Thread-safety: reentrant; the tables are constant.
#ifndef HOLDFAST_KERNELS_CPU_ELEMENTWISE_KERNEL_H_
#define HOLDFAST_KERNELS_CPU_ELEMENTWISE_KERNEL_H_

#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/cpu/division_loop.h"
#include "kernels/cpu/load_once.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/elementwise.h"
#include "kernels/kernel.h"
#include "ops/attrs.h"

namespace holdfast::cpu {

using UnaryLoop = void (*)(const void* a, void* out, int64_t n);
using BinaryLoop = void (*)(const void* a, const void* b, void* out, int64_t n);

inline constexpr int kSimdLevels = 3;

// Loops by SimdLevel and DType; null where the op does not have the type.
template <typename Loop>
struct ElementwiseTable {
  Loop loops[kSimdLevels][kDTypeLimit] = {};
  bool predicate = false;   // the result is bool
  bool float_only = false;  // integers are computed in float32

  Loop Get(DType dtype) const {
    return loops[static_cast<int>(kSimdLevel)][static_cast<int>(dtype)];
  }
};

absl::Status RunUnary(const ElementwiseTable<UnaryLoop>& table,
                      KernelContext& context, absl::Span<const TensorView> in,
                      absl::Span<const TensorView> out);
absl::Status RunBinary(const ElementwiseTable<BinaryLoop>& table,
                       KernelContext& context, const Attrs& attrs,
                       absl::Span<const TensorView> in,
                       absl::Span<const TensorView> out);

// An error if integers are divided by a zero. Before anything is written, since
// the call may be in-place.
absl::Status RefuseZeroDivisor(const KernelContext& context, const Attrs& attrs,
                               absl::Span<const TensorView> in,
                               absl::Span<const TensorView> out);

// What promotion makes of the operands; numbers among them have it already.
DType ComputationType(const Attrs& attrs, absl::Span<const TensorView> in);

// Number of elements of a row-major view without gaps, else -1.
inline int64_t DenseSize(const TensorSpec& spec) {
  const int rank = spec.rank();
  const int64_t* shape = spec.shape.data();
  const int64_t* strides = spec.strides.data();
  int64_t size = 1;
  for (int d = rank - 1; d >= 0; --d) {
    if (strides[d] != size && shape[d] != 1) return -1;
    size *= shape[d];
  }
  return size;
}

inline bool SameShape(const TensorSpec& a, const TensorSpec& b) {
  const int rank = a.rank();
  if (rank != b.rank()) return false;
  const int64_t* a_shape = a.shape.data();
  const int64_t* b_shape = b.shape.data();
  for (int d = 0; d < rank; ++d) {
    if (a_shape[d] != b_shape[d]) return false;
  }
  return true;
}

namespace elementwise_internal {

inline constexpr int kVectorBytes = 64;

// A padded loop only ever runs over whole vectors: the last elements go through
// it again, in a buffer filled up with ones. The loop is written once and its
// length is unknown to the compiler, which would otherwise use narrower
// routines for a short one.
template <typename Op, typename T>
struct UnaryBody {
  using R = typename Op::template Result<T>;

  static HOLDFAST_INLINE void Run(const void* in, void* result, int64_t n) {
    const T* a = static_cast<const T*>(in);
    R* out = static_cast<R*>(result);
    if constexpr (Op::Types::template kPadded<T>) {
      static_assert(std::is_same_v<R, T>);
      constexpr int64_t kLanes = kVectorBytes / sizeof(T);
      alignas(kVectorBytes) T padded[kLanes];
      int64_t count = n / kLanes * kLanes;
      R* last = out + count;
      const int64_t rest = n - count;
      for (int64_t j = 0; j < kLanes && rest > 0; ++j) {
        padded[j] = j < rest ? a[count + j] : T(1);
      }
      while (true) {
        if (count > 0) Loop(a, out, count);
        if (out == padded || rest == 0) break;
        a = padded;
        out = padded;
        count = kLanes;
      }
      if (rest > 0) std::memcpy(last, padded, rest * sizeof(R));
    } else {
      Loop(a, out, n);
    }
  }

  static HOLDFAST_INLINE void Loop(const T* a, R* out, int64_t n) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      out[i] = Op::template Apply<T>(LoadElement(a + i));
    }
  }
};

template <typename Op, typename T>
struct BinaryBody {
  using R = typename Op::template Result<T>;

  static HOLDFAST_INLINE void Run(const void* in_a, const void* in_b,
                                  void* result, int64_t n) {
    const T* a = static_cast<const T*>(in_a);
    const T* b = static_cast<const T*>(in_b);
    R* out = static_cast<R*>(result);
    if constexpr (elementwise::kDivisionResult<Op> !=
                  elementwise::DivisionResult::kNone) {
      DivisionLoop<Op>(a, b, out, n);
    } else if constexpr (Op::Types::template kPadded<T>) {
      static_assert(std::is_same_v<R, T>);
      constexpr int64_t kLanes = kVectorBytes / sizeof(T);
      alignas(kVectorBytes) T padded_a[kLanes];
      alignas(kVectorBytes) T padded_b[kLanes];
      int64_t count = n / kLanes * kLanes;
      R* last = out + count;
      const int64_t rest = n - count;
      for (int64_t j = 0; j < kLanes && rest > 0; ++j) {
        padded_a[j] = j < rest ? a[count + j] : T(1);
        padded_b[j] = j < rest ? b[count + j] : T(1);
      }
      while (true) {
        if (count > 0) Loop(a, b, out, count);
        if (out == padded_a || rest == 0) break;
        a = padded_a;
        b = padded_b;
        out = padded_a;
        count = kLanes;
      }
      if (rest > 0) std::memcpy(last, padded_a, rest * sizeof(R));
    } else {
      Loop(a, b, out, n);
    }
  }

  static HOLDFAST_INLINE void Loop(const T* a, const T* b, R* out, int64_t n) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      out[i] = Op::template Apply<T>(LoadElement(a + i), Operand(b + i));
    }
  }

  // A divisor is tested and used: from one load, because a client that shares
  // the memory could write a zero in between.
  static HOLDFAST_INLINE T Operand(const T* b) {
    if constexpr (std::is_integral_v<T> && elementwise::kDividesIntegers<Op>) {
      return LoadOnce(b);
    } else {
      return LoadElement(b);
    }
  }
};

template <template <typename, typename> class Body, typename Op, typename T,
          typename... Args>
constexpr void AddLoops(ElementwiseTable<void (*)(Args...)>* table) {
  if constexpr (Op::Types::template kHas<T>) {
    constexpr int kType = static_cast<int>(kDTypeOf<T>);
    using B = Body<Op, T>;
    table->loops[static_cast<int>(SimdLevel::kBaseline)][kType] =
        &RunBaseline<B, Args...>;
    table->loops[static_cast<int>(SimdLevel::kAvx2)][kType] =
        &RunAvx2<B, Args...>;
    table->loops[static_cast<int>(SimdLevel::kAvx512)][kType] =
        &RunAvx512<B, Args...>;
  }
}

template <template <typename, typename> class Body, typename Op, typename Loop>
constexpr ElementwiseTable<Loop> MakeTable() {
  ElementwiseTable<Loop> table;
  AddLoops<Body, Op, bool>(&table);
  AddLoops<Body, Op, uint8_t>(&table);
  AddLoops<Body, Op, int32_t>(&table);
  AddLoops<Body, Op, int64_t>(&table);
  AddLoops<Body, Op, float>(&table);
  AddLoops<Body, Op, double>(&table);
  AddLoops<Body, Op, Complex<float>>(&table);
  AddLoops<Body, Op, Complex<double>>(&table);
  table.predicate = std::is_same_v<typename Op::template Result<float>, bool>;
  table.float_only = !Op::Types::template kHas<int32_t>;
  return table;
}

}  // namespace elementwise_internal

template <typename Op>
inline constexpr ElementwiseTable<UnaryLoop> kUnaryTable =
    elementwise_internal::MakeTable<elementwise_internal::UnaryBody, Op,
                                    UnaryLoop>();
template <typename Op>
inline constexpr ElementwiseTable<BinaryLoop> kBinaryTable =
    elementwise_internal::MakeTable<elementwise_internal::BinaryBody, Op,
                                    BinaryLoop>();

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_ELEMENTWISE_KERNEL_H_
