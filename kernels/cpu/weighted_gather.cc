// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// weighted_gather and its two gradients, the primitives of sampling at
// positions that a tensor gives. Each is linear in two of three tensors: input
// [N,C,L], weight [N,K,P] and output (or grad) [N,C,P]; the index [N,K,P] ties
// them together.
#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/index_loops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

// Columns at a time: a block's index and weights stay in cache for every
// channel.
constexpr int64_t kBlock = 512;

struct Sizes {
  int64_t n, channels, length, taps, columns;
};

// The index, contiguous and checked. No client can change it any more: it is
// the runner's copy (kChecksData).
absl::StatusOr<const int64_t*> CheckedIndex(KernelContext& context,
                                            const Attrs& attrs,
                                            const TensorView& index,
                                            int64_t length) {
  TensorSpec spec;
  TensorView view;
  absl::Status s = MakeContiguous(context, index, DType::kInt64, &spec, &view);
  if (!s.ok()) return s;
  const int64_t* const values = view.as<int64_t>();
  const int64_t count = index.spec->numel();
  FirstBadIndex bad;
  ParallelFor(context, count, 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (values[i] >= length) return bad.Record(values[i]);
    }
  });
  if (!bad.seen()) return values;
  return absl::OutOfRangeError(
      absl::StrCat("[", attrs.schema().name, "] index ", bad.value(),
                   " is out of bounds for ", length, " elements."));
}

// to[p] += factor[p] * from[at[p]], where at[p] is not negative. REQUIRES: from
// has an element.
template <typename T>
struct GatherBody {
  static HOLDFAST_INLINE int Run(const T* __restrict from,
                                 const int64_t* __restrict at,
                                 const T* __restrict factor, int64_t n,
                                 T* __restrict to) {
    for (int64_t p = 0; p < n; ++p) {
      // Reads where it need not: a conditional load would be scalar code.
      const int64_t i = at[p] < 0 ? 0 : at[p];
      const T product = factor[p] * from[i];
      to[p] += at[p] < 0 ? T{0} : product;
    }
    return 0;
  }
};

// Taps taken together, so that a column's sum stays in a register; and the
// columns that a thread takes so.
constexpr int kTaps = 4;
constexpr int64_t kTapColumns = 256;

// The indices of a group of taps, as narrow as the planes allow: half the width
// is twice the lanes.
template <typename I>
struct TapIndices {
  I at[kTaps][kTapColumns];
};

// to[p] (+)= the sum over taps k of factor[k * stride + p] * from[at[k][p]].
template <typename T, typename I, int kCount>
struct GatherTapsBody {
  static HOLDFAST_INLINE int Run(const T* __restrict from,
                                 const TapIndices<I>* __restrict taps,
                                 const T* __restrict factor, int64_t stride,
                                 int64_t n, bool add, T* __restrict to) {
    for (int64_t p = 0; p < n; ++p) {
      T sum = add ? to[p] : T{0};
      for (int k = 0; k < kCount; ++k) {
        const I at = taps->at[k][p];
        const T product = factor[k * stride + p] * from[at < 0 ? I{0} : at];
        sum += at < 0 ? T{0} : product;
      }
      to[p] = sum;
    }
    return 0;
  }
};

template <typename T, typename I, int kCount>
void GatherTaps(const Sizes& s, const T* input, const int64_t* index,
                const T* weight, int64_t first_tap, int64_t begin, int64_t end,
                T* out) {
  TapIndices<I> taps;
  const int64_t first = first_tap * s.columns + begin;
  for (int k = 0; k < kCount; ++k) {
    const int64_t* at = index + first + k * s.columns;
    for (int64_t p = 0; p < end - begin; ++p) {
      taps.at[k][p] = at[p] < 0 ? I{-1} : static_cast<I>(at[p]);
    }
  }
  for (int64_t c = 0; c < s.channels; ++c) {
    Vectorised<GatherTapsBody<T, I, kCount>>(
        input + c * s.length, static_cast<const TapIndices<I>*>(&taps),
        weight + first, s.columns, end - begin, first_tap > 0,
        out + c * s.columns + begin);
  }
}

template <typename T, typename I>
void GatherAs(const Sizes& s, const T* input, const int64_t* index,
              const T* weight, int64_t begin, int64_t end, T* out) {
  int64_t k = 0;
  for (; k + kTaps <= s.taps; k += kTaps) {
    GatherTaps<T, I, kTaps>(s, input, index, weight, k, begin, end, out);
  }
  for (; k < s.taps; ++k) {
    GatherTaps<T, I, 1>(s, input, index, weight, k, begin, end, out);
  }
}

template <typename T>
void Gather(const Sizes& s, const T* input, const int64_t* index,
            const T* weight, int64_t begin, int64_t end, T* out) {
  if (s.taps == 0 || s.length == 0) {
    for (int64_t c = 0; c < s.channels; ++c) {
      T* to = out + c * s.columns;
      std::fill(to + begin, to + end, T{0});
    }
    return;
  }
  const bool narrow = s.length <= std::numeric_limits<int32_t>::max();
  for (int64_t at = begin; at < end; at += kTapColumns) {
    const int64_t last = std::min(end, at + kTapColumns);
    if (narrow) {
      GatherAs<T, int32_t>(s, input, index, weight, at, last, out);
    } else {
      GatherAs<T, int64_t>(s, input, index, weight, at, last, out);
    }
  }
}

template <typename T>
void ScatterChannel(const Sizes& s, const T* grad, const int64_t* index,
                    const T* weight, T* out) {
  std::fill(out, out + s.length, T{0});
  for (int64_t k = 0; k < s.taps; ++k) {
    const int64_t* at = index + k * s.columns;
    const T* w = weight + k * s.columns;
    for (int64_t p = 0; p < s.columns; ++p) {
      if (at[p] >= 0) out[at[p]] += w[p] * grad[p];
    }
  }
}

template <typename T>
void GatherDots(const Sizes& s, const T* grad, const int64_t* index,
                const T* input, int64_t begin, int64_t end, T* out) {
  for (int64_t k = 0; k < s.taps; ++k) {
    std::fill(out + k * s.columns + begin, out + k * s.columns + end, T{0});
  }
  for (int64_t c = 0; c < s.channels; ++c) {
    const T* plane = input + c * s.length;
    const T* from = grad + c * s.columns + begin;
    for (int64_t k = 0; k < s.taps && s.length > 0; ++k) {
      const int64_t at = k * s.columns + begin;
      Vectorised<GatherBody<T>>(plane, index + at, from, end - begin, out + at);
    }
  }
}

// Calls fn(image, first column, end column) over blocks of columns.
template <typename F>
void ForEachBlock(const KernelContext& context, const Sizes& s, F fn) {
  const int64_t blocks = (s.columns + kBlock - 1) / kBlock;
  ParallelFor(context, s.n * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b % blocks * kBlock;
      fn(b / blocks, first, std::min(s.columns, first + kBlock));
    }
  });
}

Sizes ReadSizes(const TensorSpec& planes, int64_t length,
                const TensorSpec& index) {
  return {planes.shape[0], planes.shape[1], length, index.shape[1],
          index.shape[2]};
}

// Calls fn(first, index, third): operands 0 and 2, contiguous and of out's
// type, and the checked index.
template <typename F>
absl::Status WithOperands(KernelContext& context, const Attrs& attrs,
                          absl::Span<const TensorView> inputs, const Sizes& s,
                          const TensorView& out, F&& fn) {
  auto index = CheckedIndex(context, attrs, inputs[1], s.length);
  if (!index.ok()) return index.status();
  if (out.spec->numel() == 0) return absl::OkStatus();
  TensorSpec specs[2];
  TensorView views[2];
  for (int i : {0, 1}) {
    absl::Status status = MakeContiguous(
        context, inputs[2 * i], inputs[0].spec->dtype, &specs[i], &views[i]);
    if (!status.ok()) return status;
  }
  return DispatchFloat(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    fn(static_cast<const T*>(views[0].as<T>()), *index,
       static_cast<const T*>(views[1].as<T>()), out.as<T>());
    return absl::OkStatus();
  });
}

}  // namespace

HOLDFAST_CPU_KERNEL(weighted_gather) {
  const TensorView& result = outputs[0];
  const Sizes s =
      ReadSizes(*result.spec, inputs[0].spec->shape[2], *inputs[1].spec);
  return WithOperands(
      context, attrs, inputs, s, result,
      [&](auto* input, const int64_t* index, auto* weight, auto* out) {
        ForEachBlock(context, s, [&](int64_t n, int64_t begin, int64_t end) {
          const int64_t taps = n * s.taps * s.columns;
          Gather(s, input + n * s.channels * s.length, index + taps,
                 weight + taps, begin, end, out + n * s.channels * s.columns);
        });
      });
}

HOLDFAST_CPU_KERNEL(weighted_gather_backward_input) {
  const TensorView& result = outputs[0];
  const Sizes s =
      ReadSizes(*result.spec, result.spec->shape[2], *inputs[1].spec);
  return WithOperands(
      context, attrs, inputs, s, result,
      [&](auto* grad, const int64_t* index, auto* weight, auto* out) {
        ParallelFor(context, s.n * s.channels, 1, [&](int64_t b, int64_t e) {
          for (int64_t p = b; p < e; ++p) {
            const int64_t taps = p / s.channels * s.taps * s.columns;
            ScatterChannel(s, grad + p * s.columns, index + taps, weight + taps,
                           out + p * s.length);
          }
        });
      });
}

HOLDFAST_CPU_KERNEL(weighted_gather_backward_weight) {
  const TensorView& result = outputs[0];
  const Sizes s =
      ReadSizes(*inputs[0].spec, inputs[2].spec->shape[2], *inputs[1].spec);
  return WithOperands(
      context, attrs, inputs, s, result,
      [&](auto* grad, const int64_t* index, auto* input, auto* out) {
        ForEachBlock(context, s, [&](int64_t n, int64_t begin, int64_t end) {
          const int64_t taps = n * s.taps * s.columns;
          GatherDots(s, grad + n * s.channels * s.columns, index + taps,
                     input + n * s.channels * s.length, begin, end, out + taps);
        });
      });
}

}  // namespace holdfast::cpu
