// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// batch_norm and its gradient. A tensor is seen as [N, C, inner]. With inner
// == 1 channels are columns, and tiles of them are worked on together; else
// each channel is N runs of adjacent elements.
#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/norm_sums.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {
namespace {

constexpr int64_t kCols = 64;

struct Layout {
  int64_t batch = 0, channels = 0, inner = 1;
  int64_t count() const { return batch * inner; }
};

Layout LayoutOf(const TensorSpec& input) {
  Layout l;
  l.batch = input.shape[0];
  l.channels = input.shape[1];
  for (int d = 2; d < input.rank(); ++d) l.inner *= input.shape[d];
  return l;
}

// The five inputs of either op, contiguous; absent ones stay so.
struct Operands {
  TensorSpec specs[5];
  TensorView views[5];
};

absl::Status MakeOperands(KernelContext& context,
                          absl::Span<const TensorView> inputs, DType dtype,
                          Operands* operands) {
  for (int i = 0; i < 5; ++i) {
    if (!inputs[i].present()) continue;
    absl::Status s = MakeContiguous(context, inputs[i], dtype,
                                    &operands->specs[i], &operands->views[i]);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

// Calls block(first, count) for ranges of channels, a tile at a time where
// channels are columns.
template <typename Block>
void ForChannels(const KernelContext& context, const Layout& l, Block block) {
  constexpr int64_t kGrain = 16384;
  const int64_t tile = l.inner == 1 ? kCols : 1;
  const int64_t tiles = (l.channels + tile - 1) / tile;
  const int64_t work = std::max<int64_t>(1, l.count() * tile);
  ParallelFor(context, tiles, std::max<int64_t>(1, kGrain / work),
              [&](int64_t begin, int64_t end) {
                for (int64_t t = begin; t < end; ++t) {
                  const int64_t first = t * tile;
                  block(first, std::min(tile, l.channels - first));
                }
              });
}

// Sums over rows of a tile of columns, in double: of x, and then of
// (x - mean)^2 where `mean` is given.
template <typename T>
struct ColumnSumsBody {
  static HOLDFAST_INLINE int Run(const T* x, int64_t rows, int64_t stride,
                                 int64_t cols, const T* mean, double* sums) {
    for (int64_t j = 0; j < cols; ++j) sums[j] = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const T* row = x + i * stride;
      for (int64_t j = 0; j < cols; ++j) {
        const double d = mean == nullptr ? row[j] : row[j] - mean[j];
        sums[j] += mean == nullptr ? d : d * d;
      }
    }
    return 0;
  }
};

template <typename T>
struct ColumnGradSumsBody {
  static HOLDFAST_INLINE int Run(const T* g, const T* x, int64_t rows,
                                 int64_t stride, int64_t cols, const T* mean,
                                 double* sums, double* products) {
    for (int64_t j = 0; j < cols; ++j) sums[j] = products[j] = 0;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        const T grad = g[i * stride + j];
        sums[j] += grad;
        products[j] += grad * (x[i * stride + j] - mean[j]);
      }
    }
    return 0;
  }
};

// out = g a + (x - mean) b + k, by column; without g: (x - mean) b + k.
template <typename T>
struct ColumnApplyBody {
  static HOLDFAST_INLINE int Run(const T* g, const T* x, T* out, int64_t rows,
                                 int64_t stride, int64_t cols, const T* mean,
                                 const T* a, const T* b, const T* k) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t at = i * stride;
#pragma GCC ivdep
      for (int64_t j = 0; j < cols; ++j) {
        T y = (x[at + j] - mean[j]) * b[j] + k[j];
        if (g != nullptr) y += g[at + j] * a[j];
        out[at + j] = y;
      }
    }
    return 0;
  }
};

template <typename T>
struct Forward {
  const Layout& l;
  const T *x, *weight, *bias, *running_mean, *running_var;
  T *out, *means, *vars;
  double eps;

  // Statistics of channels [first, first + cols).
  void Statistics(int64_t first, int64_t cols) const {
    const double count = static_cast<double>(l.count());
    if (running_mean != nullptr) {
      for (int64_t c = first; c < first + cols; ++c) {
        means[c] = running_mean[c];
        vars[c] = running_var[c];
      }
      return;
    }
    if (l.inner == 1) {
      double sums[kCols];
      Vectorised<ColumnSumsBody<T>>(x + first, l.batch, l.channels, cols,
                                    static_cast<const T*>(nullptr), sums);
      for (int64_t j = 0; j < cols; ++j) {
        means[first + j] = static_cast<T>(sums[j] / count);
      }
      Vectorised<ColumnSumsBody<T>>(x + first, l.batch, l.channels, cols,
                                    static_cast<const T*>(means + first), sums);
      for (int64_t j = 0; j < cols; ++j) {
        vars[first + j] = static_cast<T>(sums[j] / count);
      }
      return;
    }
    double sum = 0, squares = 0;
    for (int64_t n = 0; n < l.batch; ++n) {
      sum += Vectorised<SumBody<T>>(At(n, first), l.inner);
    }
    means[first] = static_cast<T>(sum / count);
    for (int64_t n = 0; n < l.batch; ++n) {
      squares +=
          Vectorised<SquaresBody<T>>(At(n, first), means[first], l.inner);
    }
    vars[first] = static_cast<T>(squares / count);
  }

  const T* At(int64_t n, int64_t c) const {
    return x + (n * l.channels + c) * l.inner;
  }

  void Run(int64_t first, int64_t cols) const {
    Statistics(first, cols);
    T scale[kCols], shift[kCols];
    for (int64_t j = 0; j < cols; ++j) {
      const int64_t c = first + j;
      const T rstd = static_cast<T>(1 / std::sqrt(vars[c] + eps));
      scale[j] = weight == nullptr ? rstd : rstd * weight[c];
      shift[j] = bias == nullptr ? T(0) : bias[c];
    }
    if (l.inner == 1) {
      Vectorised<ColumnApplyBody<T>>(
          static_cast<const T*>(nullptr), x + first, out + first, l.batch,
          l.channels, cols, static_cast<const T*>(means + first),
          static_cast<const T*>(nullptr), static_cast<const T*>(scale),
          static_cast<const T*>(shift));
      return;
    }
    for (int64_t n = 0; n < l.batch; ++n) {
      const T* from = At(n, first);
      Vectorised<ScaleBody<T>>(from, out + (from - x), means[first], scale[0],
                               shift[0], l.inner);
    }
  }
};

template <typename T>
struct Backward {
  const Layout& l;
  const T *g, *x, *weight, *means, *vars;
  T *out, *weight_grad, *bias_grad;
  double eps;
  bool training;

  void Run(int64_t first, int64_t cols) const {
    double sums[kCols] = {}, products[kCols] = {};
    if (l.inner == 1) {
      Vectorised<ColumnGradSumsBody<T>>(
          g + first, x + first, l.batch, l.channels, cols, means + first,
          static_cast<double*>(sums), static_cast<double*>(products));
    } else {
      for (int64_t n = 0; n < l.batch; ++n) {
        const int64_t at = (n * l.channels + first) * l.inner;
        sums[0] += Vectorised<SumBody<T>>(g + at, l.inner);
        products[0] +=
            Vectorised<ProductsBody<T>>(g + at, x + at, means[first], l.inner);
      }
    }
    const double count = static_cast<double>(l.count());
    T a[kCols], b[kCols], k[kCols];
    for (int64_t j = 0; j < cols; ++j) {
      const int64_t c = first + j;
      const double rstd = 1 / std::sqrt(vars[c] + eps);
      const double scale = weight == nullptr ? rstd : rstd * weight[c];
      bias_grad[c] = static_cast<T>(sums[j]);
      weight_grad[c] = static_cast<T>(products[j] * rstd);
      a[j] = static_cast<T>(scale);
      b[j] = training
                 ? static_cast<T>(-products[j] / count * rstd * rstd * scale)
                 : T(0);
      k[j] = training ? static_cast<T>(-sums[j] / count * scale) : T(0);
    }
    if (l.inner == 1) {
      Vectorised<ColumnApplyBody<T>>(
          g + first, x + first, out + first, l.batch, l.channels, cols,
          means + first, static_cast<const T*>(a), static_cast<const T*>(b),
          static_cast<const T*>(k));
      return;
    }
    for (int64_t n = 0; n < l.batch; ++n) {
      const int64_t at = (n * l.channels + first) * l.inner;
      Vectorised<NormGradBody<T>>(g + at, x + at, out + at, means[first], a[0],
                                  b[0], k[0], l.inner);
    }
  }
};

}  // namespace

HOLDFAST_CPU_KERNEL(batch_norm) {
  const TensorSpec& spec = *inputs[0].spec;
  const Layout l = LayoutOf(spec);
  Operands in;
  absl::Status s = MakeOperands(context, inputs, spec.dtype, &in);
  if (!s.ok()) return s;
  return DispatchFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const Forward<T> forward = {l,
                                in.views[0].as<T>(),
                                in.views[1].as<T>(),
                                in.views[2].as<T>(),
                                in.views[3].as<T>(),
                                in.views[4].as<T>(),
                                outputs[0].as<T>(),
                                outputs[1].as<T>(),
                                outputs[2].as<T>(),
                                attrs.Float("eps")};
    ForChannels(context, l,
                [&](int64_t first, int64_t cols) { forward.Run(first, cols); });
    return absl::OkStatus();
  });
}

HOLDFAST_CPU_KERNEL(batch_norm_backward) {
  const TensorSpec& spec = *inputs[1].spec;
  const Layout l = LayoutOf(spec);
  Operands in;
  absl::Status s = MakeOperands(context, inputs, spec.dtype, &in);
  if (!s.ok()) return s;
  return DispatchFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const Backward<T> backward = {l,
                                  in.views[0].as<T>(),
                                  in.views[1].as<T>(),
                                  in.views[2].as<T>(),
                                  in.views[3].as<T>(),
                                  in.views[4].as<T>(),
                                  outputs[0].as<T>(),
                                  outputs[1].as<T>(),
                                  outputs[2].as<T>(),
                                  attrs.Float("eps"),
                                  attrs.Bool("training")};
    ForChannels(context, l, [&](int64_t first, int64_t cols) {
      backward.Run(first, cols);
    });
    return absl::OkStatus();
  });
}

}  // namespace holdfast::cpu
