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

#include "kernels/cpu/dtype_dispatch.h"
#include "kernels/cpu/vectorised.h"

namespace holdfast {

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

// Row in terms of One and Combine, in kLanes independent chains.
template <typename R, int kLanes>
HOLDFAST_INLINE typename R::Acc LanesRow(const typename R::In* p, int64_t n) {
  typename R::Acc result = R::Init();
  int64_t i = 0;
  if (n >= kLanes) {
    typename R::Acc lanes[kLanes];
    for (int j = 0; j < kLanes; ++j) lanes[j] = R::Init();
    for (; i + kLanes <= n; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) {
        lanes[j] = R::Combine(lanes[j], R::One(p[i + j]));
      }
    }
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int j = 0; j < width; ++j) {
        lanes[j] = R::Combine(lanes[j], lanes[j + width]);
      }
    }
    result = lanes[0];
  }
  for (; i < n; ++i) result = R::Combine(result, R::One(p[i]));
  return result;
}

// float in, float or double out. Blocks short enough for float's precision are
// summed in float at full speed, and the blocks in double.
struct SumFloat {
  using In = float;
  using Acc = double;
  static constexpr int kLanes = 128;
  static constexpr int64_t kBlock = 4096;  // 32 additions in a row, no more
  static HOLDFAST_INLINE double Init() { return 0; }
  static HOLDFAST_INLINE double One(float x) { return x; }
  static HOLDFAST_INLINE double Combine(double a, double b) { return a + b; }
  static HOLDFAST_INLINE double Row(const float* p, int64_t n) {
    double total = 0;
    int64_t i = 0;
    while (i + kLanes <= n) {
      const int64_t end = std::min(n, i + kBlock);
      float lanes[kLanes] = {};
      for (; i + kLanes <= end; i += kLanes) {
        for (int j = 0; j < kLanes; ++j) lanes[j] += p[i + j];
      }
      for (int width = kLanes / 2; width >= 8; width /= 2) {
        for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
      }
      double block[2] = {};
      for (int j = 0; j < 8; ++j) block[j & 1] += lanes[j];
      total += block[0] + block[1];
    }
    double rest[2] = {};
    for (; i + 2 <= n; i += 2) {
      rest[0] += p[i];
      rest[1] += p[i + 1];
    }
    if (i < n) rest[0] += p[i];
    return total + (rest[0] + rest[1]);
  }
  static HOLDFAST_INLINE void Columns(const float* p, int64_t rows,
                                      int64_t row_stride, int64_t cols,
                                      double* acc) {
    constexpr int64_t kRows = 32, kCols = 64;
    for (int64_t r0 = 0; r0 < rows; r0 += kRows) {
      const int64_t end = std::min(rows, r0 + kRows);
      int64_t j0 = 0;
      for (; j0 + kCols <= cols; j0 += kCols) {
        float lanes[kCols] = {};
        for (int64_t r = r0; r < end; ++r) {
          const float* row = p + r * row_stride + j0;
          for (int j = 0; j < kCols; ++j) lanes[j] += row[j];
        }
        for (int j = 0; j < kCols; ++j) acc[j0 + j] += lanes[j];
      }
      if (j0 < cols) {
        float lanes[kCols] = {};
        const int64_t rest = cols - j0;
        for (int64_t r = r0; r < end; ++r) {
          const float* row = p + r * row_stride + j0;
          for (int64_t j = 0; j < rest; ++j) lanes[j] += row[j];
        }
        for (int64_t j = 0; j < rest; ++j) acc[j0 + j] += lanes[j];
      }
    }
  }
};

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
    constexpr int kLanes = 256 / sizeof(T);
    return LanesRow<Extreme, kLanes>(p, n);
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

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CPU_REDUCERS_H_
