// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// 64 bytes of floats or doubles as one value (GCC's vector extension, which
// becomes the instructions of the function around it), for the ends of loops
// over rows: folding lanes into one number and taking in fewer elements than a
// vector has. Written over arrays both become scalar code, which for rows of a
// thousand elements takes as long as the rows.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CPU_VECTOR_LANES_H_
#define HOLDFAST_KERNELS_CPU_VECTOR_LANES_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/vectorised.h"

namespace holdfast::cpu {

// How vectors, and at the end numbers, take in others.
struct AddLanes {
  static constexpr int kIdentity = 0;
  template <typename A>
  static HOLDFAST_INLINE void Take(A& a, const A& b) {
    a += b;
  }
};
struct MultiplyLanes {
  static constexpr int kIdentity = 1;
  template <typename A>
  static HOLDFAST_INLINE void Take(A& a, const A& b) {
    a *= b;
  }
};

template <typename T>
struct VectorLanes {
  static_assert(std::is_floating_point_v<T>);
  static constexpr int kCount = 64 / sizeof(T);
  typedef T Vector __attribute__((vector_size(64)));
  using Bit = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef Bit Bits __attribute__((vector_size(64)));

  // F::Of of kCount elements.
  template <typename F>
  static HOLDFAST_INLINE void Load(const T* p, Vector& v) {
    std::memcpy(&v, p, 64);
    F::template OfLanes<VectorLanes>(v);
  }

  // The elements p[0 .. n) in the last lanes, `rest` in those before them.
  // REQUIRES: 0 < n < kCount, and kCount - n elements before p may be read.
  template <typename F>
  static HOLDFAST_INLINE void LoadEnd(const T* p, int64_t n, T rest,
                                      Vector& v) {
    static constexpr Ones kOnes;
    Load<F>(p + n - kCount, v);
    Vector others = Vector{} + rest;
    Bits keep, bits, other_bits;
    std::memcpy(&keep, kOnes.bits + n, 64);
    std::memcpy(&bits, &v, 64);
    std::memcpy(&other_bits, &others, 64);
    bits = (bits & keep) | (other_bits & ~keep);
    std::memcpy(&v, &bits, 64);
  }

  // Takes F::Of of p[0 .. n) into kVectors vectors that do not wait for each
  // other. REQUIRES: n >= kCount; kVectors is a power of two.
  template <typename F, typename Op, int kVectors>
  static HOLDFAST_INLINE void TakeRow(const T* p, int64_t n, Vector* lanes) {
    constexpr int64_t kStep = kVectors * kCount;
    for (; n >= kStep; p += kStep, n -= kStep) {
      TakeVectors<F, Op, kVectors>(p, lanes);
    }
    TakeRest<F, Op, kVectors / 2>(p, n, lanes);
  }

  // All elements of a vector, or the first half of a vector's worth at p,
  // combined in double.
  template <typename Op>
  static HOLDFAST_INLINE double Fold(const Vector& v) {
    Half low, high;
    std::memcpy(&low, &v, 32);
    std::memcpy(&high, reinterpret_cast<const char*>(&v) + 32, 32);
    Wide wide = __builtin_convertvector(low, Wide);
    Op::Take(wide, __builtin_convertvector(high, Wide));
    return FoldWide<Op>(wide);
  }
  template <typename Op>
  static HOLDFAST_INLINE double FoldHalf(const T* p) {
    Half half;
    std::memcpy(&half, p, 32);
    return FoldWide<Op>(__builtin_convertvector(half, Wide));
  }

 private:
  typedef T Half __attribute__((vector_size(32)));
  typedef double Wide __attribute__((vector_size(kCount / 2 * 8)));

  // kCount zeros, then kCount of all ones.
  struct Ones {
    Bit bits[2 * kCount] = {};
    constexpr Ones() {
      for (int j = kCount; j < 2 * kCount; ++j) bits[j] = ~Bit{0};
    }
  };

  template <typename F, typename Op, int kVectors>
  static HOLDFAST_INLINE void TakeVectors(const T* p, Vector* lanes) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      Vector x;
      Load<F>(p + j * kCount, x);
      Op::Take(lanes[j], x);
    }
  }

  // Fewer than 2 * kVectors vectors, by halves.
  template <typename F, typename Op, int kVectors>
  static HOLDFAST_INLINE void TakeRest(const T* p, int64_t n, Vector* lanes) {
    if constexpr (kVectors > 0) {
      if (n >= kVectors * kCount) {
        TakeVectors<F, Op, kVectors>(p, lanes);
        p += kVectors * kCount;
        n -= kVectors * kCount;
      }
      TakeRest<F, Op, kVectors / 2>(p, n, lanes);
    } else if (n > 0) {
      Vector x;
      LoadEnd<F>(p, n, Op::kIdentity, x);
      Op::Take(lanes[1], x);
    }
  }

  template <typename Op>
  static HOLDFAST_INLINE double FoldWide(const Wide& wide) {
    typedef double Four __attribute__((vector_size(32)));
    typedef double Two __attribute__((vector_size(16)));
    Four four, upper;
    std::memcpy(&four, &wide, 32);
    // Not sizeof(Wide): to GCC 12 that is 8 where the size depends on T.
    if constexpr (kCount == 16) {
      std::memcpy(&upper, reinterpret_cast<const char*>(&wide) + 32, 32);
      Op::Take(four, upper);
    }
    Two two, other;
    std::memcpy(&two, &four, 16);
    std::memcpy(&other, reinterpret_cast<const char*>(&four) + 16, 16);
    Op::Take(two, other);
    double result = two[0];
    Op::Take(result, two[1]);
    return result;
  }
};

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_VECTOR_LANES_H_
