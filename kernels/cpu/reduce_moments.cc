// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// var_mean: mean and squared deviations of blocks that stay in the first-level
// cache, joined pairwise (Chan, Golub, LeVeque 1983): one pass over memory, and
// nothing cancels.
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/reduce_plan.h"
#include "kernels/cpu/reducers.h"

namespace holdfast::cpu {
namespace {

struct Moments {
  double count, mean, squares;  // squares: sum of (x - mean)^2
};

HOLDFAST_INLINE Moments Join(const Moments& a, const Moments& b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  const double count = a.count + b.count;
  const double step = b.mean - a.mean;
  const double share = b.count / count;
  return {count, a.mean + step * share,
          a.squares + b.squares + step * step * a.count * share};
}

// Sums of x - shift and of its square, over `n` elements, to moments.
HOLDFAST_INLINE Moments Shifted(double n, double shift, double sum,
                                double squares) {
  const double mean = sum / n;
  return {n, shift + mean, std::max(squares - sum * mean, 0.0)};
}

template <typename T>
struct MomentsReducer {
  using In = T;
  using Acc = Moments;
  static constexpr int kLanes = 128 / sizeof(T);
  static HOLDFAST_INLINE Moments Init() { return {0, 0, 0}; }
  static HOLDFAST_INLINE Moments One(const T& x) {
    // An infinite element has no distance from the mean: NaN.
    return {1, static_cast<double>(x), static_cast<double>(x - x)};
  }
  static HOLDFAST_INLINE Moments Combine(const Moments& a, const Moments& b) {
    return Join(a, b);
  }
  static HOLDFAST_INLINE Moments Block(const T* p, int64_t n) {
    T lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) lanes[j] += p[i + j];
    }
    double sum = 0;
    for (int j = 0; j < kLanes; ++j) sum += lanes[j];
    for (; i < n; ++i) sum += p[i];
    // Close to the mean, so that what rounding left out is small.
    const T shift = static_cast<T>(sum / static_cast<double>(n));
    T rest[kLanes] = {}, squares[kLanes] = {};
    for (i = 0; i + kLanes <= n; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) {
        const T d = p[i + j] - shift;
        rest[j] += d;
        squares[j] += d * d;
      }
    }
    double total = 0, square = 0;
    for (int j = 0; j < kLanes; ++j) {
      total += rest[j];
      square += squares[j];
    }
    for (; i < n; ++i) {
      const double d = p[i] - shift;
      total += d;
      square += d * d;
    }
    return Shifted(static_cast<double>(n), shift, total, square);
  }
  static HOLDFAST_INLINE Moments Row(const T* p, int64_t n) {
    constexpr int64_t kBlock = 1024;
    if (n == 0) return Init();
    Moments result = Block(p, std::min(kBlock, n));
    for (int64_t i = kBlock; i < n; i += kBlock) {
      result = Join(result, Block(p + i, std::min(kBlock, n - i)));
    }
    return result;
  }
  static HOLDFAST_INLINE void Columns(const T* p, int64_t rows, int64_t stride,
                                      int64_t cols, Moments* acc) {
    constexpr int64_t kRows = 64, kCols = kLanes;
    for (int64_t j0 = 0; j0 < cols; j0 += kCols) {
      const int64_t width = std::min(kCols, cols - j0);
      for (int64_t r0 = 0; r0 < rows; r0 += kRows) {
        const int64_t end = std::min(rows, r0 + kRows);
        T shift[kCols] = {}, rest[kCols] = {}, squares[kCols] = {};
        const auto pass = [&](auto fn) HOLDFAST_INLINE_LAMBDA {
          for (int64_t r = r0; r < end; ++r) {
            const T* row = p + r * stride + j0;
            if (width == kCols) {
              for (int j = 0; j < kCols; ++j) fn(j, row[j]);
            } else {
              for (int64_t j = 0; j < width; ++j) fn(j, row[j]);
            }
          }
        };
        pass([&](int64_t j, T x) HOLDFAST_INLINE_LAMBDA { shift[j] += x; });
        const T scale = T{1} / static_cast<T>(end - r0);
        for (int j = 0; j < kCols; ++j) shift[j] *= scale;
        pass([&](int64_t j, T x) HOLDFAST_INLINE_LAMBDA {
          const T d = x - shift[j];
          rest[j] += d;
          squares[j] += d * d;
        });
        const double n = static_cast<double>(end - r0);
        for (int64_t j = 0; j < width; ++j) {
          acc[j0 + j] =
              Join(acc[j0 + j], Shifted(n, shift[j], rest[j], squares[j]));
        }
      }
    }
  }
};

}  // namespace

HOLDFAST_CPU_KERNEL(var_mean) {
  const AttrValue& dim = attrs.Get("dim");
  const Dims* list = std::get_if<Dims>(&dim);
  ReducePlan plan;
  absl::Status s =
      MakeReducePlan(*inputs[0].spec, list == nullptr ? Dims() : *list, &plan);
  if (!s.ok()) return s;
  if (plan.outputs == 0) return absl::OkStatus();
  const double freedom = std::max(
      static_cast<double>(plan.count) - attrs.Float("correction"), 0.0);
  return DispatchFloat(inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    T* var = outputs[0].as<T>();
    T* mean = outputs[1].as<T>();
    if (plan.count == 0) {
      for (int64_t i = 0; i < plan.outputs; ++i) {
        var[i] = mean[i] = std::numeric_limits<T>::quiet_NaN();
      }
      return absl::OkStatus();
    }
    return Reduce<MomentsReducer<T>>(
        context, plan, inputs[0].as<T>(),
        [&](int64_t offset, int64_t stride, const Moments* acc, int64_t n) {
          for (int64_t i = 0; i < n; ++i) {
            var[offset + i * stride] = static_cast<T>(acc[i].squares / freedom);
            mean[offset + i * stride] = static_cast<T>(acc[i].mean);
          }
        });
  });
}

}  // namespace holdfast::cpu
