// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The loop structure of a reduction, shared by all reducers. A reducer gives
// two inner loops (along rows, down columns) and a rule to combine partial
// results; Reduce() does the rest: any dimensions, any strides, threads.
// Blocks depend on the sizes alone, so that a result does not depend on the
// number of threads.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CPU_REDUCE_PLAN_H_
#define HOLDFAST_KERNELS_CPU_REDUCE_PLAN_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_cursor.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/kernel.h"
#include "ops/tensor_spec.h"

namespace holdfast::cpu {

// Results computed together; the inner loops keep this many partials in L1.
inline constexpr int64_t kReduceTile = 256;

// Lists that are parallel to each other. The last entry of each list is the
// inner loop.
struct ReducePlan {
  Dims kept_shape, kept_strides, kept_out_strides;
  Dims reduced_shape, reduced_strides;
  int64_t outputs = 1;  // elements of the result
  int64_t count = 1;    // elements that make one of them
};

// `dims` as in the call: may be negative; an empty list means all dimensions.
// Errors name no op: inference has refused such calls before.
absl::Status MakeReducePlan(const TensorSpec& input,
                            absl::Span<const int64_t> dims, ReducePlan* plan);

// One tile: acc[i] takes in the `n` elements at p + i * kept_stride +
// j * stride, for i < kept.
// REQUIRES: kept <= kReduceTile.
template <typename R>
struct ReduceTileBody {
  static HOLDFAST_INLINE int Run(const typename R::In* p, int64_t kept,
                                 int64_t kept_stride, int64_t n, int64_t stride,
                                 typename R::Acc* acc) {
    if (kept_stride == 1 && kept > 1 && (stride != 1 || n < 8)) {
      R::Columns(p, n, stride, kept, acc);
    } else if (stride == 1 && n < 8) {
      // Rows of a few elements side by side.
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t i = 0; i < kept; ++i) {
          acc[i] = R::Combine(acc[i], R::One(p[i * kept_stride + j]));
        }
      }
    } else if (stride == 1) {
      for (int64_t i = 0; i < kept; ++i) {
        acc[i] = R::Combine(acc[i], R::Row(p + i * kept_stride, n));
      }
    } else if (kept > 1 && kept_stride < stride) {
      // Collected in the order of memory, a few rows at a time.
      constexpr int64_t kCollected = 16;
      typename R::In rows[kCollected * kReduceTile];
      for (int64_t begin = 0; begin < n; begin += kCollected) {
        const int64_t m = std::min(kCollected, n - begin);
        for (int64_t j = 0; j < m; ++j) {
          const typename R::In* from = p + (begin + j) * stride;
          for (int64_t i = 0; i < kept; ++i) {
            rows[j * kept + i] = LoadElement(from + i * kept_stride);
          }
        }
        R::Columns(rows, m, kept, kept, acc);
      }
    } else {
      // Collected first: rows have loops that do not wait for each other.
      constexpr int64_t kCollected = 512;
      typename R::In row[kCollected];
      for (int64_t i = 0; i < kept; ++i) {
        for (int64_t begin = 0; begin < n; begin += kCollected) {
          const int64_t m = std::min(kCollected, n - begin);
          const typename R::In* from = p + i * kept_stride + begin * stride;
          for (int64_t j = 0; j < m; ++j)
            row[j] = LoadElement(from + j * stride);
          acc[i] = R::Combine(acc[i], R::Row(row, m));
        }
      }
    }
    return 0;
  }
};

// The shape that one work item walks: the plan's reduced dimensions with the
// split dimension cut to a segment. Elements of expanded dimensions are many
// without being anywhere: whoever has enough of them is looked after.
template <typename R>
void ReduceSegment(const KernelContext& context, const ReducePlan& plan,
                   const typename R::In* p, int64_t kept, int64_t kept_stride,
                   int split, int64_t begin, int64_t end,
                   typename R::Acc* acc) {
  Dims shape = plan.reduced_shape;
  if (split >= 0) {
    p += begin * plan.reduced_strides[split];
    shape[split] = end - begin;
  }
  const int inner = static_cast<int>(shape.size()) - 1;
  int64_t outer = 1;
  for (int d = 0; d < inner; ++d) outer *= shape[d];
  StridedCursor<1> cursor(absl::MakeSpan(shape).subspan(0, inner),
                          {plan.reduced_strides.data()});
  // A multiple of all blocks that loops work in, so that the result is the same
  // as in one go; adjacent elements have memory, and one chain of lanes.
  constexpr int64_t kRows = 65536, kLook = 1 << 20;
  const int64_t n = shape[inner], stride = plan.reduced_strides[inner];
  const int64_t rows = stride == 1 ? n : kRows;
  int64_t since = 0;
  for (int64_t i = 0; i < outer; ++i) {
    for (int64_t j = 0, m; j < n; j += m) {
      m = std::min(n - j, rows);
      Vectorised<ReduceTileBody<R>>(p + cursor[0] + j * stride, kept,
                                    kept_stride, m, stride, acc);
      if ((since += m * kept) < kLook) continue;
      if (context.Stopped()) return;
      since = 0;
    }
    cursor.Next();
  }
}

// Calls write(out_offset, out_stride, accs, n) for every tile of results.
// REQUIRES: plan.count > 0 and plan.outputs > 0.
template <typename R>
absl::Status Reduce(
    KernelContext& context, const ReducePlan& plan, const typename R::In* data,
    absl::FunctionRef<void(int64_t, int64_t, const typename R::Acc*, int64_t)>
        write) {
  using Acc = typename R::Acc;
  const int kept_rank = static_cast<int>(plan.kept_shape.size()) - 1;
  const int64_t inner = plan.kept_shape[kept_rank];
  const int64_t inner_stride = plan.kept_strides[kept_rank];
  // Results side by side share a loop over memory; others need no company, and
  // narrow tiles leave every thread its share of whole rows, but a tile has to
  // be worth setting up.
  const int64_t width =
      inner_stride == 1
          ? kReduceTile
          : std::clamp<int64_t>(std::max(inner / 64, 4096 / plan.count), 1,
                                kReduceTile);
  const int64_t tiles = (inner + width - 1) / width;
  const int64_t units = plan.outputs / inner * tiles;
  const absl::Span<const int64_t> outer_shape =
      absl::MakeSpan(plan.kept_shape).subspan(0, kept_rank);
  const int64_t numel = plan.outputs * plan.count;

  // Few results from many elements: the elements are cut into segments too.
  constexpr int64_t kSegment = 32768;
  int64_t segments = 1;
  int split = -1;
  if (units < 16 && numel >= 2 * kSegment) {
    // An outer dimension if one is long enough: it leaves the rows whole.
    const int inner_dim = static_cast<int>(plan.reduced_shape.size()) - 1;
    split = inner_dim;
    for (int d = 0; d < inner_dim; ++d) {
      if (plan.reduced_shape[d] >= 8 &&
          (split == inner_dim ||
           plan.reduced_shape[d] > plan.reduced_shape[split])) {
        split = d;
      }
    }
    segments = std::min<int64_t>(
        {64, numel / kSegment / units + 1, plan.reduced_shape[split]});
  }
  const int64_t split_size = split < 0 ? 0 : plan.reduced_shape[split];
  Acc* partial = nullptr;
  if (segments > 1) {
    partial = static_cast<Acc*>(
        context.Scratch(sizeof(Acc) * segments * units * kReduceTile));
    if (partial == nullptr) {
      return absl::ResourceExhaustedError("scratch memory for a reduction");
    }
  }

  const int64_t unit_cost = std::max<int64_t>(numel / (units * segments), 1);
  const int64_t grain = std::max<int64_t>(16384 / unit_cost, 1);
  ParallelFor(context, units * segments, grain, [&](int64_t b, int64_t e) {
    Acc local[kReduceTile];
    for (int64_t u = b; u < e; ++u) {
      const int64_t unit = u / segments, segment = u % segments;
      const int64_t tile = unit % tiles;
      StridedCursor<2> at(
          outer_shape, {plan.kept_strides.data(), plan.kept_out_strides.data()},
          unit / tiles);
      const int64_t first = tile * width;
      const int64_t n = std::min(width, inner - first);
      Acc* acc = partial == nullptr
                     ? local
                     : partial + (unit * segments + segment) * kReduceTile;
      for (int64_t i = 0; i < n; ++i) acc[i] = R::Init();
      ReduceSegment<R>(context, plan, data + at[0] + first * inner_stride, n,
                       inner_stride, split, split_size * segment / segments,
                       split_size * (segment + 1) / segments, acc);
      if (partial == nullptr) {
        const int64_t out_stride = plan.kept_out_strides[kept_rank];
        write(at[1] + first * out_stride, out_stride, acc, n);
      }
    }
  });
  if (partial == nullptr) return absl::OkStatus();

  for (int64_t unit = 0; unit < units; ++unit) {
    StridedCursor<2> at(
        outer_shape, {plan.kept_strides.data(), plan.kept_out_strides.data()},
        unit / tiles);
    const int64_t first = unit % tiles * width;
    const int64_t n = std::min(width, inner - first);
    Acc* acc = partial + unit * segments * kReduceTile;
    for (int64_t s = 1; s < segments; ++s) {
      for (int64_t i = 0; i < n; ++i) {
        acc[i] = R::Combine(acc[i], acc[s * kReduceTile + i]);
      }
    }
    const int64_t out_stride = plan.kept_out_strides[kept_rank];
    write(at[1] + first * out_stride, out_stride, acc, n);
  }
  return absl::OkStatus();
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_REDUCE_PLAN_H_
