// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// vector_norm for the orders that one pass without pow() computes.
#include <cmath>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/reduce_plan.h"
#include "kernels/cpu/reducers.h"

namespace holdfast {
namespace {

// Sums of F(x), blocks of which are summed in T: short enough for its
// precision.
template <typename T, typename F>
struct SumOf {
  using In = T;
  using Acc = double;
  static constexpr int kLanes = 256 / sizeof(T);
  static HOLDFAST_INLINE double Init() { return 0; }
  static HOLDFAST_INLINE double One(const T& x) { return F::Of(x); }
  static HOLDFAST_INLINE double Combine(double a, double b) { return a + b; }
  static HOLDFAST_INLINE double Row(const T* p, int64_t n) {
    constexpr int64_t kBlock = 2048;
    double total = 0;
    int64_t i = 0;
    while (i + kLanes <= n) {
      const int64_t end = std::min(n, i + kBlock);
      T lanes[kLanes] = {};
      for (; i + kLanes <= end; i += kLanes) {
        for (int j = 0; j < kLanes; ++j) lanes[j] += F::Of(p[i + j]);
      }
      for (int width = kLanes / 2; width >= 4; width /= 2) {
        for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
      }
      total += (double{lanes[0]} + lanes[1]) + (double{lanes[2]} + lanes[3]);
    }
    for (; i < n; ++i) total += F::Of(p[i]);
    return total;
  }
  static HOLDFAST_INLINE void Columns(const T* p, int64_t rows, int64_t stride,
                                      int64_t cols, double* acc) {
    constexpr int64_t kRows = 32, kCols = 64;
    for (int64_t r0 = 0; r0 < rows; r0 += kRows) {
      const int64_t end = std::min(rows, r0 + kRows);
      for (int64_t j0 = 0; j0 < cols; j0 += kCols) {
        T lanes[kCols] = {};
        const int64_t width = std::min(kCols, cols - j0);
        for (int64_t r = r0; r < end; ++r) {
          const T* row = p + r * stride + j0;
          if (width == kCols) {
            for (int j = 0; j < kCols; ++j) lanes[j] += F::Of(row[j]);
          } else {
            for (int64_t j = 0; j < width; ++j) lanes[j] += F::Of(row[j]);
          }
        }
        for (int64_t j = 0; j < width; ++j) acc[j0 + j] += lanes[j];
      }
    }
  }
};

struct Square {
  template <typename T>
  static HOLDFAST_INLINE T Of(T x) {
    return x * x;
  }
};
struct AbsoluteValue {
  template <typename T>
  static HOLDFAST_INLINE T Of(T x) {
    return std::abs(x);
  }
};
struct Nonzero {
  template <typename T>
  static HOLDFAST_INLINE T Of(T x) {
    return x != 0 ? T{1} : T{0};
  }
};

// Extremes of magnitudes.
template <typename T, bool kMax>
struct ExtremeMagnitude {
  using In = T;
  using Acc = T;
  static HOLDFAST_INLINE T Init() {
    return kMax ? T{0} : std::numeric_limits<T>::infinity();
  }
  static HOLDFAST_INLINE T One(const T& x) { return std::abs(x); }
  static HOLDFAST_INLINE T Combine(T a, T b) {
    return Extreme<T, kMax>::Combine(a, b);
  }
  static HOLDFAST_INLINE T Row(const T* p, int64_t n) {
    constexpr int kLanes = 256 / sizeof(T);
    return LanesRow<ExtremeMagnitude, kLanes>(p, n);
  }
  static HOLDFAST_INLINE void Columns(const T* p, int64_t rows, int64_t stride,
                                      int64_t cols, T* acc) {
    PlainColumns<ExtremeMagnitude>(p, rows, stride, cols, acc);
  }
};

template <typename R, typename T>
absl::Status Norm(KernelContext& context, const ReducePlan& plan,
                  const TensorView& input, const TensorView& output,
                  bool root) {
  T* out = output.as<T>();
  const auto result = [&](const typename R::Acc& acc) {
    return static_cast<T>(root ? std::sqrt(acc) : acc);
  };
  if (plan.count == 0) {
    for (int64_t i = 0; i < plan.outputs; ++i) out[i] = result(R::Init());
    return absl::OkStatus();
  }
  return Reduce<R>(context, plan, input.as<T>(),
                   [&](int64_t offset, int64_t stride,
                       const typename R::Acc* acc, int64_t n) {
                     for (int64_t i = 0; i < n; ++i) {
                       out[offset + i * stride] = result(acc[i]);
                     }
                   });
}

}  // namespace

HOLDFAST_CPU_KERNEL(vector_norm) {
  const AttrValue& dim = attrs.Get("dim");
  const Dims* list = std::get_if<Dims>(&dim);
  const TensorView& in = inputs[0];
  const TensorView& out = outputs[0];
  ReducePlan plan;
  absl::Status s =
      MakeReducePlan(*in.spec, list == nullptr ? Dims() : *list, &plan);
  if (!s.ok()) return s;
  if (plan.outputs == 0) return absl::OkStatus();
  const double ord = attrs.Float("ord");
  return DispatchFloat(in.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if (ord == 2) {
      return Norm<SumOf<T, Square>, T>(context, plan, in, out, true);
    }
    if (ord == 1) {
      return Norm<SumOf<T, AbsoluteValue>, T>(context, plan, in, out, false);
    }
    if (ord == 0) {
      return Norm<SumOf<T, Nonzero>, T>(context, plan, in, out, false);
    }
    if (ord > 0) {
      return Norm<ExtremeMagnitude<T, true>, T>(context, plan, in, out, false);
    }
    return Norm<ExtremeMagnitude<T, false>, T>(context, plan, in, out, false);
  });
}

}  // namespace holdfast
