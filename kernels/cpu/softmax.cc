// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax, log_softmax and their gradients. Tensors are seen as
// [outer, n, inner], the reduced dimension in the middle; inner == 1 is a row
// of adjacent elements, otherwise tiles of columns are worked on together.
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/softmax_row.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/fast_exp.h"

namespace holdfast::cpu {
namespace {

// A tile of columns.
constexpr int64_t kSoftmaxCols = 64;
// Rows up to this length would not fill the lanes: many of them are turned into
// columns of a tile. That goes by the number of all rows, not of a thread's, so
// that results are equal for any number of threads.
constexpr int64_t kTurnedRow = 32;
constexpr int64_t kManyRows = kSoftmaxCols;

template <typename T, bool kLog>
struct SoftmaxRowsBody {
  static constexpr int kLanes = kSoftmaxLanes<T>;

  static HOLDFAST_INLINE int Run(const T* in, T* out, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r) Row(in + r * n, out + r * n, n);
    return 0;
  }

  static HOLDFAST_INLINE void Row(const T* in, T* out, int64_t n) {
    const T max = RowMax(in, n);
    if constexpr (kLog) {
      constexpr T kLowest = -std::numeric_limits<T>::infinity();
      T lanes[kLanes] = {};
      ReadBlocks(in, n, kLowest, [&](const T* p) HOLDFAST_INLINE_LAMBDA {
        for (int j = 0; j < kLanes; ++j) lanes[j] += FastExp(p[j] - max);
      });
      const T log_sum = std::log(
          Fold(lanes, [](T a, T b) HOLDFAST_INLINE_LAMBDA { return a + b; }));
      for (int64_t i = 0; i < n; ++i) out[i] = in[i] - max - log_sum;
      return;
    }
    const T scale = 1 / ExpRow(in, n, max, out);
    for (int64_t j = 0; j < n; ++j) out[j] *= scale;
  }
};

template <typename T, bool kLog>
struct SoftmaxColumnsBody {
  static HOLDFAST_INLINE int Run(const T* in, T* out, int64_t n, int64_t stride,
                                 int64_t cols) {
    T max[kSoftmaxCols], sum[kSoftmaxCols] = {};
    for (int64_t j = 0; j < cols; ++j) {
      max[j] = in[j];
      sum[j] = 0;
    }
    for (int64_t i = 1; i < n; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        max[j] = Larger(max[j], in[i * stride + j]);
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        const T e = FastExp(in[i * stride + j] - max[j]);
        sum[j] += e;
        if constexpr (!kLog) out[i * stride + j] = e;
      }
    }
    // All of them: the vector logarithm's last bits are not the scalar one's,
    // and no result may depend on its place.
    for (int64_t j = 0; j < kSoftmaxCols; ++j) {
      sum[j] = kLog ? std::log(sum[j]) : 1 / sum[j];
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        T* o = out + i * stride + j;
        *o = kLog ? in[i * stride + j] - max[j] - sum[j] : *o * sum[j];
      }
    }
    return 0;
  }
};

template <typename T, bool kLog>
struct SoftmaxBackwardRowsBody {
  static HOLDFAST_INLINE int Run(const T* grad, const T* y, T* out,
                                 int64_t rows, int64_t n) {
    constexpr int kLanes = kSoftmaxLanes<T>;
    for (int64_t r = 0; r < rows; ++r, grad += n, y += n, out += n) {
      T lanes[kLanes] = {};
      int64_t i = 0;
      for (; i + kLanes <= n; i += kLanes) {
        for (int j = 0; j < kLanes; ++j) {
          lanes[j] += kLog ? grad[i + j] : grad[i + j] * y[i + j];
        }
      }
      for (int j = 0; i < n; ++i, ++j) {
        lanes[j] += kLog ? grad[i] : grad[i] * y[i];
      }
      const T total =
          Fold(lanes, [](T a, T b) HOLDFAST_INLINE_LAMBDA { return a + b; });
      for (i = 0; i < n; ++i) {
        out[i] =
            kLog ? grad[i] - FastExp(y[i]) * total : y[i] * (grad[i] - total);
      }
    }
    return 0;
  }
};

template <typename T, bool kLog>
struct SoftmaxBackwardColumnsBody {
  static HOLDFAST_INLINE int Run(const T* grad, const T* y, T* out, int64_t n,
                                 int64_t stride, int64_t cols) {
    T total[kSoftmaxCols] = {};
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        const int64_t at = i * stride + j;
        total[j] += kLog ? grad[at] : grad[at] * y[at];
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        const int64_t at = i * stride + j;
        out[at] = kLog ? grad[at] - FastExp(y[at]) * total[j]
                       : y[at] * (grad[at] - total[j]);
      }
    }
    return 0;
  }
};

// Up to kSoftmaxCols rows of n <= kTurnedRow elements as columns. Those that
// are missing are zeros, so that every tile goes through the same code.
template <typename T>
struct Tile {
  T at[kTurnedRow * kSoftmaxCols];

  HOLDFAST_INLINE void Load(const T* in, int64_t rows, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      T* column = at + i * kSoftmaxCols;
      for (int64_t r = 0; r < rows; ++r) column[r] = in[r * n + i];
      for (int64_t r = rows; r < kSoftmaxCols; ++r) column[r] = 0;
    }
  }
  HOLDFAST_INLINE void Store(T* out, int64_t rows, int64_t n) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < n; ++i) out[r * n + i] = at[i * kSoftmaxCols + r];
    }
  }
};

template <typename T, bool kLog>
struct SoftmaxTurnedBody {
  static HOLDFAST_INLINE int Run(const T* in, T* out, int64_t rows, int64_t n) {
    Tile<T> tile;
    for (int64_t r = 0; r < rows; r += kSoftmaxCols) {
      const int64_t count = std::min(rows - r, kSoftmaxCols);
      tile.Load(in + r * n, count, n);
      SoftmaxColumnsBody<T, kLog>::Run(tile.at, tile.at, n, kSoftmaxCols,
                                       kSoftmaxCols);
      tile.Store(out + r * n, count, n);
    }
    return 0;
  }
};

template <typename T, bool kLog>
struct SoftmaxBackwardTurnedBody {
  static HOLDFAST_INLINE int Run(const T* grad, const T* y, T* out,
                                 int64_t rows, int64_t n) {
    Tile<T> grads, values;
    for (int64_t r = 0; r < rows; r += kSoftmaxCols) {
      const int64_t count = std::min(rows - r, kSoftmaxCols);
      grads.Load(grad + r * n, count, n);
      values.Load(y + r * n, count, n);
      SoftmaxBackwardColumnsBody<T, kLog>::Run(grads.at, values.at, grads.at, n,
                                               kSoftmaxCols, kSoftmaxCols);
      grads.Store(out + r * n, count, n);
    }
    return 0;
  }
};

struct Extents {
  int64_t outer = 1, n = 1, inner = 1;
  bool turned() const { return n <= kTurnedRow && outer >= kManyRows; }
};

absl::Status SplitAt(const TensorSpec& spec, int64_t dim_attr, Extents* e) {
  if (spec.rank() == 0) return absl::OkStatus();
  absl::StatusOr<int> dim = NormalizeDim(dim_attr, spec.rank());
  if (!dim.ok()) return dim.status();
  for (int d = 0; d < spec.rank(); ++d) {
    (d < *dim ? e->outer : d == *dim ? e->n : e->inner) *= spec.shape[d];
  }
  return absl::OkStatus();
}

// Runs rows(first, count) over [outer] or columns(offset, cols) over tiles.
template <typename Rows, typename Columns>
void ForEachSlice(const KernelContext& context, const Extents& e, Rows rows,
                  Columns columns) {
  // An element costs about as much as several of a simple loop.
  constexpr int64_t kWork = 4096;
  if (e.inner == 1) {
    ParallelFor(context, e.outer, std::max<int64_t>(1, kWork / e.n),
                [&](int64_t b, int64_t end) { rows(b, end - b); });
    return;
  }
  const int64_t tiles = (e.inner + kSoftmaxCols - 1) / kSoftmaxCols;
  const int64_t unit = e.n * std::min(e.inner, kSoftmaxCols);
  ParallelFor(context, e.outer * tiles, std::max<int64_t>(1, kWork / unit),
              [&](int64_t b, int64_t end) {
                for (int64_t u = b; u < end; ++u) {
                  const int64_t first = u % tiles * kSoftmaxCols;
                  columns(u / tiles * e.n * e.inner + first,
                          std::min(kSoftmaxCols, e.inner - first));
                }
              });
}

template <bool kLog>
absl::Status Softmax(KernelContext& context, const Attrs& attrs,
                     const TensorView& input, const TensorView& output) {
  const TensorSpec& out_spec = *output.spec;
  if (out_spec.numel() == 0) return absl::OkStatus();
  Extents e;
  absl::Status s = SplitAt(out_spec, attrs.Int("dim"), &e);
  if (!s.ok()) return s;
  TensorSpec spec;
  TensorView view;
  s = MakeContiguous(context, input, out_spec.dtype, &spec, &view);
  if (!s.ok()) return s;
  return DispatchFloat(out_spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* in = view.as<T>();
    T* out = output.as<T>();
    ForEachSlice(
        context, e,
        [&](int64_t first, int64_t rows) {
          const int64_t at = first * e.n;
          if (e.turned()) {
            Vectorised<SoftmaxTurnedBody<T, kLog>>(in + at, out + at, rows,
                                                   e.n);
          } else {
            Vectorised<SoftmaxRowsBody<T, kLog>>(in + at, out + at, rows, e.n);
          }
        },
        [&](int64_t at, int64_t cols) {
          Vectorised<SoftmaxColumnsBody<T, kLog>>(in + at, out + at, e.n,
                                                  e.inner, cols);
        });
    return absl::OkStatus();
  });
}

template <bool kLog>
absl::Status SoftmaxBackward(KernelContext& context, const Attrs& attrs,
                             absl::Span<const TensorView> inputs,
                             const TensorView& output) {
  const TensorSpec& out_spec = *output.spec;
  if (out_spec.numel() == 0) return absl::OkStatus();
  Extents e;
  absl::Status s = SplitAt(out_spec, attrs.Int("dim"), &e);
  if (!s.ok()) return s;
  TensorSpec specs[2];
  TensorView views[2];
  for (int i = 0; i < 2; ++i) {
    s = MakeContiguous(context, inputs[i], out_spec.dtype, &specs[i],
                       &views[i]);
    if (!s.ok()) return s;
  }
  return DispatchFloat(out_spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* grad = views[0].as<T>();
    const T* y = views[1].as<T>();
    T* out = output.as<T>();
    ForEachSlice(
        context, e,
        [&](int64_t first, int64_t rows) {
          const int64_t at = first * e.n;
          if (e.turned()) {
            Vectorised<SoftmaxBackwardTurnedBody<T, kLog>>(grad + at, y + at,
                                                           out + at, rows, e.n);
          } else {
            Vectorised<SoftmaxBackwardRowsBody<T, kLog>>(grad + at, y + at,
                                                         out + at, rows, e.n);
          }
        },
        [&](int64_t at, int64_t cols) {
          Vectorised<SoftmaxBackwardColumnsBody<T, kLog>>(
              grad + at, y + at, out + at, e.n, e.inner, cols);
        });
    return absl::OkStatus();
  });
}

}  // namespace

HOLDFAST_CPU_KERNEL(softmax) {
  return Softmax<false>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CPU_KERNEL(log_softmax) {
  return Softmax<true>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CPU_KERNEL(softmax_backward) {
  return SoftmaxBackward<false>(context, attrs, inputs, outputs[0]);
}
HOLDFAST_CPU_KERNEL(log_softmax_backward) {
  return SoftmaxBackward<true>(context, attrs, inputs, outputs[0]);
}

}  // namespace holdfast::cpu
