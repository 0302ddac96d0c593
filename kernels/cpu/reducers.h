// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The reducers that Reduce() (reduce_plan.h) runs. Each names its input and
// partial result types and gives: Init, One (of one element), Combine, Row (of
// n adjacent elements) and Columns (acc[j] takes in column j of some rows).
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CPU_REDUCERS_H_
#define HOLDFAST_KERNELS_CPU_REDUCERS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cpu/extreme_row.h"
#include "kernels/cpu/vector_lanes.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {

// Columns in terms of One and Combine: as many columns at a time as fit in
// registers, down a few rows that lie close together.
template <typename R>
HOLDFAST_INLINE void PlainColumns(const typename R::In* __restrict p,
                                  int64_t rows, int64_t row_stride,
                                  int64_t cols,
                                  typename R::Acc* __restrict acc) {
  constexpr int64_t kRows = 32, kCols = 256 / sizeof(typename R::Acc);
  for (int64_t r0 = 0; r0 < rows; r0 += kRows) {
    const int64_t end = std::min(rows, r0 + kRows);
    int64_t j0 = 0;
    for (; j0 + kCols <= cols; j0 += kCols) {
      typename R::Acc lanes[kCols];
      for (int j = 0; j < kCols; ++j) lanes[j] = acc[j0 + j];
      for (int64_t r = r0; r < end; ++r) {
        const typename R::In* row = p + r * row_stride + j0;
        for (int j = 0; j < kCols; ++j) {
          lanes[j] = R::Combine(lanes[j], R::One(row[j]));
        }
      }
      for (int j = 0; j < kCols; ++j) acc[j0 + j] = lanes[j];
    }
    for (int64_t r = r0; r < end; ++r) {
      const typename R::In* row = p + r * row_stride;
      for (int64_t j = j0; j < cols; ++j) {
        acc[j] = R::Combine(acc[j], R::One(row[j]));
      }
    }
  }
}

// Combines kWidth lanes into the first kTo, halving them. The widths are
// constants: lanes in a loop over widths would live in memory.
template <int kWidth, int kTo, typename T, typename F>
HOLDFAST_INLINE void FoldLanes(T* lanes, const F& combine) {
  if constexpr (kWidth > kTo) {
    constexpr int kHalf = kWidth / 2;
    for (int j = 0; j < kHalf; ++j) {
      lanes[j] = combine(lanes[j], lanes[j + kHalf]);
    }
    FoldLanes<kHalf, kTo>(lanes, combine);
  }
}

// Calls take(lane, i) for elements [begin, end), fewer than 2 * kWidth: what a
// loop over all lanes leaves over. By halves, the last under a mask: one after
// the other they would take as long as the loop did.
template <int kWidth, int kLeast, typename F>
HOLDFAST_INLINE void ForRest(int64_t begin, int64_t end, const F& take) {
  if constexpr (kWidth >= kLeast) {
    if (begin + kWidth <= end) {
      for (int j = 0; j < kWidth; ++j) take(j, begin + j);
      begin += kWidth;
    }
    ForRest<kWidth / 2, kLeast>(begin, end, take);
  } else {
    const int64_t rest = end - begin;
    for (int j = 0; j < kLeast; ++j) {
      if (j < rest) take(j, begin + j);
    }
  }
}

// Row in terms of One and Combine, in kLanes independent chains. Ends of rows
// of bytes go one by one: a mask for so many of them is long code.
template <typename R, int kLanes>
HOLDFAST_INLINE typename R::Acc LanesRow(const typename R::In* p, int64_t n) {
  constexpr int kStep = kLanes / 4;
  typename R::Acc result = R::Init();
  int64_t i = 0;
  constexpr int64_t kShort = std::min(2 * kLanes, 64);
  if (n < kShort) {
    // Lanes that stay empty would take as long as the row.
    constexpr int kFew = 8;
    typename R::Acc lanes[kFew];
    for (int j = 0; j < kFew; ++j) lanes[j] = R::Init();
    for (; i + kFew <= n; i += kFew) {
      for (int j = 0; j < kFew; ++j) {
        lanes[j] = R::Combine(lanes[j], R::One(p[i + j]));
      }
    }
    FoldLanes<kFew, 1>(lanes,
                       [](typename R::Acc a, typename R::Acc b)
                           HOLDFAST_INLINE_LAMBDA { return R::Combine(a, b); });
    result = lanes[0];
  } else {
    typename R::Acc lanes[kLanes];
    for (int j = 0; j < kLanes; ++j) lanes[j] = R::Init();
    for (; i + kLanes <= n; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) {
        lanes[j] = R::Combine(lanes[j], R::One(p[i + j]));
      }
    }
    if constexpr (sizeof(typename R::In) >= 4) {
      ForRest<kLanes / 2, kStep>(
          i, n, [&](int j, int64_t at) HOLDFAST_INLINE_LAMBDA {
            lanes[j] = R::Combine(lanes[j], R::One(p[at]));
          });
      i = n;
    }
    FoldLanes<kLanes, 1>(
        lanes, [](typename R::Acc a, typename R::Acc b)
                   HOLDFAST_INLINE_LAMBDA { return R::Combine(a, b); });
    result = lanes[0];
  }
  for (; i < n; ++i) result = R::Combine(result, R::One(p[i]));
  return result;
}

// Functions of an element for SumOf; OfLanes does the same to a vector, without
// comparing: 512-bit comparisons become scalar code.
struct Itself {
  template <typename T>
  static HOLDFAST_INLINE T Of(T x) {
    return x;
  }
  template <typename Lanes>
  static HOLDFAST_INLINE void OfLanes(typename Lanes::Vector&) {}
};
struct NotNan {
  template <typename T>
  static HOLDFAST_INLINE T Of(T x) {
    return x == x ? x : T{0};
  }
  template <typename Lanes>
  static HOLDFAST_INLINE void OfLanes(typename Lanes::Vector& v) {
    using Bit = typename Lanes::Bit;
    constexpr int kWidth = 8 * sizeof(Bit);
    constexpr Bit kMagnitude = std::numeric_limits<Bit>::max();
    constexpr Bit kInfinity = kWidth == 64
                                  ? static_cast<Bit>(int64_t{0x7ff} << 52)
                                  : static_cast<Bit>(int64_t{0xff} << 23);
    typename Lanes::Bits bits;
    std::memcpy(&bits, &v, sizeof(v));
    // Negative, and so all ones when shifted, where it is above infinity's.
    bits &= ~((kInfinity - (bits & kMagnitude)) >> (kWidth - 1));
    std::memcpy(&v, &bits, sizeof(v));
  }
};

// Sums of F::Of(x), of float or double, into double. Blocks short enough for
// T's precision are summed in T at full speed, and the blocks in double.
template <typename T, typename F>
struct SumOf {
  using In = T;
  using Acc = double;
  using Lanes = VectorLanes<T>;
  static constexpr int kStep = Lanes::kCount;
  static constexpr int kVectors = 8;  // that do not wait for each other
  static HOLDFAST_INLINE double Init() { return 0; }
  static HOLDFAST_INLINE double One(const T& x) { return F::Of(x); }
  static HOLDFAST_INLINE double Combine(double a, double b) { return a + b; }
  static HOLDFAST_INLINE double Row(const T* p, int64_t n) {
    if (n < kStep) return ShortRow(p, n);
    // 36 additions in a row of T, no more.
    constexpr int64_t kBlock = 32 * kVectors * kStep;
    double total = 0;
    int64_t i = 0;
    for (; n - i >= kBlock; i += kBlock) total += Block(p + i, kBlock);
    if (i < n) {
      total += n - i < kStep              ? ShortRow(p + i, n - i)
               : n - i < kVectors * kStep ? FewVectors(p + i, n - i)
                                          : Block(p + i, n - i);
    }
    return total;
  }
  // REQUIRES: n >= kStep. Without sums that stay empty.
  static HOLDFAST_INLINE double FewVectors(const T* p, int64_t n) {
    typename Lanes::Vector sums[2] = {};
    Lanes::template TakeRow<F, AddLanes, 2>(p, n, sums);
    sums[0] += sums[1];
    return Lanes::template Fold<AddLanes>(sums[0]);
  }
  // REQUIRES: n >= kStep.
  static HOLDFAST_INLINE double Block(const T* p, int64_t n) {
    typename Lanes::Vector sums[kVectors] = {};
    Lanes::template TakeRow<F, AddLanes, kVectors>(p, n, sums);
    const auto fold = [&](auto count) HOLDFAST_INLINE_LAMBDA {
      for (int j = 0; j < count; ++j) sums[j] += sums[j + count];
    };
    fold(std::integral_constant<int, 4>());
    fold(std::integral_constant<int, 2>());
    fold(std::integral_constant<int, 1>());
    return Lanes::template Fold<AddLanes>(sums[0]);
  }
  static HOLDFAST_INLINE double ShortRow(const T* p, int64_t n) {
    double sums[2] = {};
    int64_t i = 0;
    if (std::is_same_v<F, Itself> && n >= kStep / 2) {
      sums[0] = Lanes::template FoldHalf<AddLanes>(p);
      i = kStep / 2;
    }
    for (; i + 2 <= n; i += 2) {
      sums[0] += F::Of(p[i]);
      sums[1] += F::Of(p[i + 1]);
    }
    if (i < n) sums[0] += F::Of(p[i]);
    return sums[0] + sums[1];
  }
  static HOLDFAST_INLINE void Columns(const T* p, int64_t rows,
                                      int64_t row_stride, int64_t cols,
                                      double* acc) {
    constexpr int64_t kRows = 32, kCols = 64;
    for (int64_t r0 = 0; r0 < rows; r0 += kRows) {
      const int64_t end = std::min(rows, r0 + kRows);
      int64_t j0 = 0;
      for (; j0 + kCols <= cols; j0 += kCols) {
        T lanes[kCols] = {};
        for (int64_t r = r0; r < end; ++r) {
          const T* row = p + r * row_stride + j0;
          for (int j = 0; j < kCols; ++j) lanes[j] += F::Of(row[j]);
        }
        for (int j = 0; j < kCols; ++j) acc[j0 + j] += lanes[j];
      }
      if (j0 < cols) {
        T lanes[kCols] = {};
        const int64_t rest = cols - j0;
        for (int64_t r = r0; r < end; ++r) {
          const T* row = p + r * row_stride + j0;
          for (int64_t j = 0; j < rest; ++j) lanes[j] += F::Of(row[j]);
        }
        for (int64_t j = 0; j < rest; ++j) acc[j0 + j] += lanes[j];
      }
    }
  }
};

using SumFloat = SumOf<float, Itself>;

// Any type into double.
template <typename T>
struct SumDouble {
  using In = T;
  using Acc = double;
  static HOLDFAST_INLINE double Init() { return 0; }
  static HOLDFAST_INLINE double One(const T& x) {
    return static_cast<double>(LoadElement(&x));
  }
  static HOLDFAST_INLINE double Combine(double a, double b) { return a + b; }
  static HOLDFAST_INLINE double Row(const T* p, int64_t n) {
    constexpr int64_t kBlock = 4096;
    double total = 0;
    for (int64_t i = 0; i < n; i += kBlock) {
      total += LanesRow<SumDouble, 32>(p + i, std::min(kBlock, n - i));
    }
    return total;
  }
  static HOLDFAST_INLINE void Columns(const T* p, int64_t rows, int64_t stride,
                                      int64_t cols, double* acc) {
    PlainColumns<SumDouble>(p, rows, stride, cols, acc);
  }
};

// Any type into int64, modulo 2^64.
template <typename T>
struct SumInt {
  using In = T;
  using Acc = uint64_t;
  static HOLDFAST_INLINE uint64_t Init() { return 0; }
  static HOLDFAST_INLINE uint64_t One(const T& x) {
    const auto value = LoadElement(&x);
    if constexpr (std::is_floating_point_v<T>) {
      // Outside the range the conversion is undefined.
      return value >= -9.2e18 && value <= 9.2e18
                 ? static_cast<uint64_t>(static_cast<int64_t>(value))
                 : uint64_t{1} << 63;
    } else {
      return static_cast<uint64_t>(value);
    }
  }
  static HOLDFAST_INLINE uint64_t Combine(uint64_t a, uint64_t b) {
    return a + b;
  }
  static HOLDFAST_INLINE uint64_t Row(const T* p, int64_t n) {
    return LanesRow<SumInt, 32>(p, n);
  }
  static HOLDFAST_INLINE void Columns(const T* p, int64_t rows, int64_t stride,
                                      int64_t cols, uint64_t* acc) {
    PlainColumns<SumInt>(p, rows, stride, cols, acc);
  }
};

// Elements that are not zero.
template <typename T>
struct CountNonzero {
  using In = T;
  using Acc = uint64_t;
  static HOLDFAST_INLINE uint64_t Init() { return 0; }
  static HOLDFAST_INLINE uint64_t One(const T& x) {
    return LoadElement(&x) != T{};
  }
  static HOLDFAST_INLINE uint64_t Combine(uint64_t a, uint64_t b) {
    return a + b;
  }
  // Narrow counters, as many of which fit in a vector as elements do.
  static HOLDFAST_INLINE uint64_t Row(const T* p, int64_t n) {
    constexpr int64_t kBlock = 1 << 20;
    uint64_t total = 0;
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t end = std::min(n, i + kBlock);
      uint32_t count = 0;
      for (int64_t j = i; j < end; ++j) count += LoadElement(p + j) != T{};
      total += count;
    }
    return total;
  }
  static HOLDFAST_INLINE void Columns(const T* p, int64_t rows, int64_t stride,
                                      int64_t cols, uint64_t* acc) {
    constexpr int64_t kRows = 64, kCols = 64;
    for (int64_t r0 = 0; r0 < rows; r0 += kRows) {
      const int64_t end = std::min(rows, r0 + kRows);
      for (int64_t j0 = 0; j0 < cols; j0 += kCols) {
        const int64_t width = std::min(kCols, cols - j0);
        uint32_t counts[kCols] = {};
        for (int64_t r = r0; r < end; ++r) {
          const T* row = p + r * stride + j0;
          for (int64_t j = 0; j < width; ++j) {
            counts[j] += LoadElement(row + j) != T{};
          }
        }
        for (int64_t j = 0; j < width; ++j) acc[j0 + j] += counts[j];
      }
    }
  }
};

// Largest (or smallest) element; NaN beats everything. bool is read as
// uint8_t 0 or 1.
template <typename T, bool kMax>
struct Extreme {
  using In = T;
  using Acc = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  static HOLDFAST_INLINE Acc Init() {
    using L = std::numeric_limits<Acc>;
    if constexpr (std::is_floating_point_v<T>) {
      return kMax ? -L::infinity() : L::infinity();
    } else {
      return kMax ? L::lowest() : L::max();
    }
  }
  static HOLDFAST_INLINE Acc One(const T& x) { return LoadElement(&x); }
  static HOLDFAST_INLINE Acc Combine(Acc a, Acc b) {
    // | not ||: a branch would keep the loops from being vectorised.
    if constexpr (std::is_floating_point_v<T>) {
      return (kMax ? b > a : b < a) | (b != b) ? b : a;
    } else {
      return (kMax ? b > a : b < a) ? b : a;
    }
  }
  static HOLDFAST_INLINE Acc Row(const T* p, int64_t n) {
    // A bool has to be loaded as one, whatever its byte.
    if constexpr (!std::is_same_v<T, bool>) {
      using Vectors = ExtremeRow<T, kMax>;
      if (n >= Vectors::kCount) return Vectors::Of(p, n);
      Acc result = Init();
      for (int64_t i = 0; i < n; ++i) result = Combine(result, One(p[i]));
      return result;
    }
    return LanesRow<Extreme, 256>(p, n);
  }
  static HOLDFAST_INLINE void Columns(const T* p, int64_t rows, int64_t stride,
                                      int64_t cols, Acc* acc) {
    PlainColumns<Extreme>(p, rows, stride, cols, acc);
  }
};

// all (kAll) or any: 1 or 0.
template <typename T, bool kAll>
struct Truth {
  using In = T;
  using Acc = uint8_t;
  static HOLDFAST_INLINE uint8_t Init() { return kAll; }
  static HOLDFAST_INLINE uint8_t One(const T& x) {
    return LoadElement(&x) != T{};
  }
  static HOLDFAST_INLINE uint8_t Combine(uint8_t a, uint8_t b) {
    return kAll ? a & b : a | b;
  }
  static HOLDFAST_INLINE uint8_t Row(const T* p, int64_t n) {
    constexpr int64_t kBlock = 4096;
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t end = std::min(n, i + kBlock);
      uint8_t acc = kAll;
      for (int64_t j = i; j < end; ++j) acc = Combine(acc, One(p[j]));
      if (acc != kAll) return acc;
    }
    return kAll;
  }
  static HOLDFAST_INLINE void Columns(const T* p, int64_t rows, int64_t stride,
                                      int64_t cols, uint8_t* acc) {
    PlainColumns<Truth>(p, rows, stride, cols, acc);
  }
};

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_REDUCERS_H_
