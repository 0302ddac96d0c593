// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// group_norm and its gradient. A tensor is seen as rows, each a group of
// `channels` channels of `inner` adjacent elements; layer normalisation is the
// case of one group and inner == 1, where weight and bias vary along the row.
#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/norm_sums.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

struct Layout {
  int64_t rows = 1;
  int64_t groups = 1;
  int64_t channels = 1;  // per group
  int64_t inner = 1;
  int64_t row() const { return channels * inner; }
};

Layout LayoutOf(const Attrs& attrs, const TensorSpec& input) {
  Layout l;
  const int rank = input.rank();
  const int dims = static_cast<int>(attrs.Int("normalized_dims"));
  if (dims > 0) {
    for (int d = 0; d < rank; ++d) {
      (d < rank - dims ? l.rows : l.channels) *= input.shape[d];
    }
    return l;
  }
  l.groups = attrs.Int("groups");
  l.rows = input.shape[0] * l.groups;
  l.channels = input.shape[1] / l.groups;
  for (int d = 2; d < rank; ++d) l.inner *= input.shape[d];
  return l;
}

// Elements of work worth another thread.
constexpr int64_t kNormGrain = 16384;

int64_t RowGrain(const Layout& l) {
  return std::max<int64_t>(1, kNormGrain / std::max<int64_t>(1, l.row()));
}

// out = (x - mean) rstd w + b, w and b (null: one and zero) along the row.
template <typename T>
struct AffineRowBody {
  static HOLDFAST_INLINE int Run(const T* x, T* out, const T* w, const T* b,
                                 T mean, T rstd, int64_t n) {
    if (w != nullptr && b != nullptr) {
      for (int64_t i = 0; i < n; ++i) {
        out[i] = (x[i] - mean) * rstd * w[i] + b[i];
      }
    } else if (w != nullptr) {
      for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * rstd * w[i];
    } else {
      for (int64_t i = 0; i < n; ++i) {
        out[i] = (x[i] - mean) * rstd + (b == nullptr ? T(0) : b[i]);
      }
    }
    return 0;
  }
};

// One row of layer normalisation's gradient; adds to the gradients of weight
// and bias on the way. `w` is never null here.
template <typename T>
struct RowGradBody {
  static HOLDFAST_INLINE int Run(const T* g, const T* x, const T* w, T* out,
                                 T* weight_grad, T* bias_grad, T mean, T rstd,
                                 bool center, int64_t n) {
    const double products = SumOf<T>(n, [=](int64_t i) HOLDFAST_INLINE_LAMBDA {
      return g[i] * w[i] * (x[i] - mean);
    });
    const double total =
        !center ? 0 : SumOf<T>(n, [=](int64_t i) HOLDFAST_INLINE_LAMBDA {
          return g[i] * w[i];
        });
    const T b = static_cast<T>(-products / n * rstd * rstd * rstd);
    const T k = static_cast<T>(-total / n * rstd);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T d = x[i] - mean;
      out[i] = g[i] * w[i] * rstd + d * b + k;
      weight_grad[i] += g[i] * d * rstd;
      bias_grad[i] += g[i];
    }
    return 0;
  }
};

// out = sum of `count` rows of `n`.
template <typename T>
struct AddRowsBody {
  static HOLDFAST_INLINE int Run(const T* rows, int64_t count, int64_t stride,
                                 int64_t n, T* out) {
    for (int64_t i = 0; i < n; ++i) {
      double sum = 0;
      for (int64_t r = 0; r < count; ++r) sum += rows[r * stride + i];
      out[i] = static_cast<T>(sum);
    }
    return 0;
  }
};

absl::Status NoMemory(const Attrs& attrs) {
  return absl::ResourceExhaustedError(
      absl::StrCat("[", attrs.schema().name, "] no scratch memory."));
}

// The gradients of layer normalisation. Rows are cut into chunks that do not
// depend on the threads, so that the sums over rows do not either.
template <typename T>
absl::Status LayerGradients(KernelContext& context, const Attrs& attrs,
                            const Layout& l, const T* g, const T* x,
                            const T* weight, const T* mean, const T* rstd,
                            bool center, T* out, T* weight_grad, T* bias_grad) {
  const int64_t all = l.groups * l.channels;
  const int64_t per_chunk = std::max((l.rows + 31) / 32, RowGrain(l));
  const int64_t chunks = (l.rows + per_chunk - 1) / per_chunk;
  const int64_t width = 2 * all;
  T* partial = static_cast<T*>(context.Scratch(chunks * width * sizeof(T)));
  T* ones = nullptr;
  if (weight == nullptr) {
    ones = static_cast<T*>(context.Scratch(all * sizeof(T)));
    if (ones != nullptr) std::fill(ones, ones + all, T(1));
    weight = ones;
  }
  if (partial == nullptr || weight == nullptr) return NoMemory(attrs);
  ParallelFor(context, chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      T* sums = partial + chunk * width;
      std::fill(sums, sums + width, T(0));
      const int64_t end = std::min(l.rows, (chunk + 1) * per_chunk);
      for (int64_t r = chunk * per_chunk; r < end; ++r) {
        const int64_t at = r * l.channels;
        const int64_t channel = r % l.groups * l.channels;
        Vectorised<RowGradBody<T>>(g + at, x + at, weight + channel, out + at,
                                   sums + channel, sums + all + channel,
                                   center ? mean[r] : T(0), rstd[r], center,
                                   l.channels);
      }
    }
  });
  Vectorised<AddRowsBody<T>>(partial, chunks, width, all, weight_grad);
  Vectorised<AddRowsBody<T>>(partial + all, chunks, width, all, bias_grad);
  return absl::OkStatus();
}

template <typename T>
absl::Status GroupGradients(KernelContext& context, const Attrs& attrs,
                            const Layout& l, const T* g, const T* x,
                            const T* weight, const T* mean, const T* rstd,
                            bool center, T* out, T* weight_grad, T* bias_grad) {
  // Per sample and channel: sums of g and of g (x - mean).
  const int64_t lines = l.rows * l.channels;
  double* sums =
      static_cast<double*>(context.Scratch(2 * lines * sizeof(double)));
  if (sums == nullptr) return NoMemory(attrs);
  ParallelFor(context, l.rows, RowGrain(l), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const T m = center ? mean[r] : T(0);
      const T* w =
          weight == nullptr ? nullptr : weight + r % l.groups * l.channels;
      double total = 0, products = 0;
      for (int64_t c = 0; c < l.channels; ++c) {
        const int64_t line = r * l.channels + c;
        const T* from = g + line * l.inner;
        double* sum = sums + 2 * line;
        sum[0] = Vectorised<SumBody<T>>(from, l.inner);
        sum[1] =
            Vectorised<ProductsBody<T>>(from, x + line * l.inner, m, l.inner);
        const double factor = w == nullptr ? 1.0 : w[c];
        total += factor * sum[0];
        products += factor * sum[1];
      }
      const double scale = rstd[r];
      const double n = static_cast<double>(l.row());
      const T b = static_cast<T>(-products / n * scale * scale * scale);
      const T k = center ? static_cast<T>(-total / n * scale) : T(0);
      for (int64_t c = 0; c < l.channels; ++c) {
        const int64_t at = (r * l.channels + c) * l.inner;
        const T a = w == nullptr ? rstd[r] : w[c] * rstd[r];
        Vectorised<NormGradBody<T>>(g + at, x + at, out + at, m, a, b, k,
                                    l.inner);
      }
    }
  });
  const int64_t all = l.groups * l.channels;
  for (int64_t c = 0; c < all; ++c) {
    double weight_sum = 0, bias_sum = 0;
    for (int64_t line = c; line < lines; line += all) {
      bias_sum += sums[2 * line];
      weight_sum += sums[2 * line + 1] * rstd[line / l.channels];
    }
    weight_grad[c] = static_cast<T>(weight_sum);
    bias_grad[c] = static_cast<T>(bias_sum);
  }
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_CPU_KERNEL(group_norm) {
  const TensorSpec& spec = *inputs[0].spec;
  const Layout l = LayoutOf(attrs, spec);
  TensorSpec specs[3];
  TensorView views[3];
  for (int i = 0; i < 3; ++i) {
    if (!inputs[i].present()) continue;
    absl::Status s =
        MakeContiguous(context, inputs[i], spec.dtype, &specs[i], &views[i]);
    if (!s.ok()) return s;
  }
  const double eps = attrs.Float("eps");
  const bool center = attrs.Bool("center");
  return DispatchFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* x = views[0].as<T>();
    const T* weight = views[1].as<T>();
    const T* bias = views[2].as<T>();
    T* out = outputs[0].as<T>();
    T* means = outputs[1].as<T>();
    T* rstds = outputs[2].as<T>();
    const int64_t n = l.row();
    ParallelFor(context, l.rows, RowGrain(l), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const T* row = x + r * n;
        const T mean =
            center ? static_cast<T>(Vectorised<SumBody<T>>(row, n) / n) : T(0);
        const double var = Vectorised<SquaresBody<T>>(row, mean, n) / n;
        const T rstd = static_cast<T>(1 / std::sqrt(var + eps));
        means[r] = mean;
        rstds[r] = rstd;
        const int64_t channel = r % l.groups * l.channels;
        const T* w = weight == nullptr ? nullptr : weight + channel;
        const T* b = bias == nullptr ? nullptr : bias + channel;
        if (l.inner == 1) {
          Vectorised<AffineRowBody<T>>(row, out + r * n, w, b, mean, rstd, n);
          continue;
        }
        for (int64_t c = 0; c < l.channels; ++c) {
          Vectorised<ScaleBody<T>>(row + c * l.inner, out + r * n + c * l.inner,
                                   mean, w == nullptr ? rstd : rstd * w[c],
                                   b == nullptr ? T(0) : b[c], l.inner);
        }
      }
    });
    return absl::OkStatus();
  });
}

HOLDFAST_CPU_KERNEL(group_norm_backward) {
  const TensorSpec& spec = *inputs[1].spec;
  const Layout l = LayoutOf(attrs, spec);
  TensorSpec specs[5];
  TensorView views[5];
  for (int i = 0; i < 5; ++i) {
    if (!inputs[i].present()) continue;
    absl::Status s =
        MakeContiguous(context, inputs[i], spec.dtype, &specs[i], &views[i]);
    if (!s.ok()) return s;
  }
  const bool center = attrs.Bool("center");
  return DispatchFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const auto run = l.inner == 1 ? LayerGradients<T> : GroupGradients<T>;
    return run(context, attrs, l, views[0].as<T>(), views[1].as<T>(),
               views[2].as<T>(), views[3].as<T>(), views[4].as<T>(), center,
               outputs[0].as<T>(), outputs[1].as<T>(), outputs[2].as<T>());
  });
}

}  // namespace holdfast::cpu
