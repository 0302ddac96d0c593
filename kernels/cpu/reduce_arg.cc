// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// argmax, argmin: the first index of the extreme; the first NaN is extreme.
#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reducers.h"
#include "kernels/cpu/strided_cursor.h"

namespace holdfast::cpu {
namespace {

// True when b, found after a, takes its place.
template <typename T, bool kMax>
HOLDFAST_INLINE bool Beats(T b, T a) {
  if constexpr (std::is_floating_point_v<T>) {
    return (kMax ? b > a : b < a) | ((b != b) & (a == a));
  } else {
    return kMax ? b > a : b < a;
  }
}

template <typename T>
struct Found {
  T value;
  int64_t index;
};

// A block's extreme is found at full speed; only a block that improves on what
// is known is searched for the position.
template <typename T, bool kMax>
struct ArgRowBody {
  using R = Extreme<T, kMax>;
  using Acc = typename R::Acc;
  static HOLDFAST_INLINE int Run(const T* p, int64_t begin, int64_t end,
                                 Found<Acc>* found) {
    constexpr int64_t kBlock = 2048;
    Found<Acc> best = {R::One(p[begin]), begin};
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t stop = std::min(end, i + kBlock);
      const Acc extreme = R::Row(p + i, stop - i);
      if (!Beats<Acc, kMax>(extreme, best.value)) continue;
      best.value = extreme;
      int64_t j = i;
      constexpr int64_t kSome = 16;
      while (j + kSome <= stop && !AnyIs(p + j, kSome, extreme)) j += kSome;
      while (j < stop - 1 && !AnyIs(p + j, 1, extreme)) ++j;
      best.index = j;
    }
    *found = best;
    return 0;
  }

  // Without a branch per element.
  static HOLDFAST_INLINE bool AnyIs(const T* p, int64_t n, Acc value) {
    int any = 0;
    for (int64_t j = 0; j < n; ++j) {
      const Acc x = R::One(p[j]);
      any |= (x == value) | ((x != x) & (value != value));
    }
    return any != 0;
  }
};

// kCols neighbouring rows of results, taken down the columns.
constexpr int64_t kArgCols = 128;
template <typename T, bool kMax>
struct ArgColumnsBody {
  using R = Extreme<T, kMax>;
  using Acc = typename R::Acc;
  static HOLDFAST_INLINE int Run(const KernelContext* context, const T* p,
                                 int64_t n, int64_t stride, int64_t cols,
                                 int64_t* out) {
    constexpr int64_t kLook = 1 << 14;  // rows
    Acc best[kArgCols];
    for (int64_t j = 0; j < cols; ++j) {
      best[j] = R::One(p[j]);
      out[j] = 0;
    }
    for (int64_t i = 1; i < n; ++i) {
      if (i % kLook == 0 && context->Stopped()) return 0;
      const T* row = p + i * stride;
      for (int64_t j = 0; j < cols; ++j) {
        const Acc value = R::One(row[j]);
        const bool better = Beats<Acc, kMax>(value, best[j]);
        best[j] = better ? value : best[j];
        out[j] = better ? i : out[j];
      }
    }
    return 0;
  }
};

template <typename T, bool kMax>
absl::Status ArgFlat(KernelContext& context, const T* p, int64_t n,
                     int64_t* out) {
  using Acc = typename Extreme<T, kMax>::Acc;
  constexpr int64_t kMaxSegments = 64;
  const int64_t segments = std::clamp<int64_t>(n / 32768, 1, kMaxSegments);
  Found<Acc> found[kMaxSegments];
  ParallelFor(context, segments, 1, [&](int64_t b, int64_t e) {
    for (int64_t s = b; s < e; ++s) {
      Vectorised<ArgRowBody<T, kMax>>(p, n * s / segments,
                                      n * (s + 1) / segments, &found[s]);
    }
  });
  Found<Acc> best = found[0];
  for (int64_t s = 1; s < segments; ++s) {
    if (Beats<Acc, kMax>(found[s].value, best.value)) best = found[s];
  }
  *out = best.index;
  return absl::OkStatus();
}

template <typename T, bool kMax>
absl::Status ArgAlong(KernelContext& context, const TensorView& input, int dim,
                      int64_t* out) {
  using R = Extreme<T, kMax>;
  using Acc = typename R::Acc;
  const TensorSpec& spec = *input.spec;
  const T* data = input.as<T>();
  const int64_t n = spec.shape[dim], stride = spec.strides[dim];
  Dims shape, strides;
  for (int d = 0; d < spec.rank(); ++d) {
    if (d == dim) continue;
    shape.push_back(spec.shape[d]);
    strides.push_back(spec.strides[d]);
  }
  const int64_t outputs = NumElements(shape);
  if (outputs == 0) return absl::OkStatus();
  if (outputs == 1) {
    if (stride == 1) return ArgFlat<T, kMax>(context, data, n, out);
  } else if (strides.back() == 1 && stride != 1) {
    const int64_t cols = shape.back();
    const int64_t tiles = (cols + kArgCols - 1) / kArgCols;
    shape.pop_back();
    const int64_t grain = std::max<int64_t>(1, 16384 / (n * kArgCols));
    ParallelFor(context, outputs / cols * tiles, grain,
                [&](int64_t b, int64_t e) {
                  for (int64_t u = b; u < e; ++u) {
                    StridedCursor<1> at(shape, {strides.data()}, u / tiles);
                    const int64_t first = u % tiles * kArgCols;
                    Vectorised<ArgColumnsBody<T, kMax>>(
                        const_cast<const KernelContext*>(&context),
                        data + at[0] + first, n, stride,
                        std::min(kArgCols, cols - first),
                        out + u / tiles * cols + first);
                  }
                });
    return absl::OkStatus();
  }
  const int64_t grain = std::max<int64_t>(1, 16384 / n);
  ParallelFor(context, outputs, grain, [&](int64_t b, int64_t e) {
    StridedCursor<1> at(shape, {strides.data()}, b);
    for (int64_t i = b; i < e; ++i, at.Next()) {
      const T* p = data + at[0];
      if (stride == 1 && n >= 16) {
        Found<Acc> found;
        Vectorised<ArgRowBody<T, kMax>>(p, int64_t{0}, n, &found);
        out[i] = found.index;
        continue;
      }
      Acc best = R::One(p[0]);
      int64_t index = 0;
      constexpr int64_t kLook = 1 << 20;
      for (int64_t j = 1; j < n; ++j) {
        if (j % kLook == 0 && context.Stopped()) return;
        const Acc value = R::One(p[j * stride]);
        if (Beats<Acc, kMax>(value, best)) {
          best = value;
          index = j;
        }
      }
      out[i] = index;
    }
  });
  return absl::OkStatus();
}

template <bool kMax>
absl::Status Arg(KernelContext& context, const Attrs& attrs,
                 const TensorView& tensor, int64_t* out) {
  TensorView input = tensor;
  if (input.spec->numel() == 0) return absl::OkStatus();
  const AttrValue& dim_attr = attrs.Get(0);
  TensorSpec flat;
  int dim = -1;
  if (IsNone(dim_attr)) {
    absl::Status s =
        MakeContiguous(context, tensor, tensor.spec->dtype, &flat, &input);
    if (!s.ok()) return s;
  } else if (input.spec->rank() > 0) {
    absl::StatusOr<int> d =
        NormalizeDim(AttrAsInt(dim_attr), input.spec->rank());
    if (!d.ok()) return d.status();
    dim = *d;
  }
  return DispatchDType(input.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if (dim < 0) {
      return ArgFlat<T, kMax>(context, input.as<T>(), input.spec->numel(), out);
    }
    return ArgAlong<T, kMax>(context, input, dim, out);
  });
}

}  // namespace

HOLDFAST_CPU_KERNEL(argmax) {
  return Arg<true>(context, attrs, inputs[0], outputs[0].as<int64_t>());
}
HOLDFAST_CPU_KERNEL(argmin) {
  return Arg<false>(context, attrs, inputs[0], outputs[0].as<int64_t>());
}

}  // namespace holdfast::cpu
