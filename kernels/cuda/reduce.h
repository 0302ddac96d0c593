// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The one template of all reductions: each of `rows` results combines `count`
// elements. Few long rows are cut into segments, whose partial results a second
// launch combines.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_REDUCE_H_
#define HOLDFAST_KERNELS_CUDA_REDUCE_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/group.h"
#include "kernels/cuda/offsets.h"
#include "ops/attrs.h"
#include "ops/tensor_spec.h"

namespace holdfast {

// R::Combine as an object.
template <typename R>
struct CombineOf {
  using Acc = typename R::Acc;
  HOLDFAST_HD Acc operator()(Acc a, Acc b) const { return R::Combine(a, b); }
};

// How a reduction is spread over threads.
struct ReduceShape {
  int group = 1;         // threads per segment
  int64_t segments = 1;  // per row
  int64_t length = 0;    // of a segment, but for the last
};

// `columns`: neighbouring rows are neighbours in memory, so that a thread each
// reads best.
inline ReduceShape PlanReduce(int64_t rows, int64_t count, bool columns) {
  constexpr int64_t kThreads = 1 << 17;  // enough for any GPU
  ReduceShape shape;
  shape.group = columns && rows >= kWarp ? 1 : GroupSize(count);
  // A segment keeps its threads busy for a while.
  const int64_t least = shape.group == 1 ? 64 : 16 * shape.group;
  const int64_t wanted = kThreads / std::max<int64_t>(rows * shape.group, 1);
  shape.segments =
      std::clamp<int64_t>(std::min(wanted, count / least), 1, 1024);
  shape.length = (count + shape.segments - 1) / shape.segments;
  return shape;
}

// write(row, acc) for every row, acc being R's combination of load(row, j) for
// 0 <= j < count, or R::Init() if count is 0.
template <typename R, typename Load, typename Write>
absl::Status ReduceRows(KernelContext& context, int64_t rows, int64_t count,
                        bool columns, Load load, Write write) {
  using Acc = typename R::Acc;
  const ReduceShape shape = PlanReduce(rows, count, columns);
  const int64_t segments = shape.segments, length = shape.length;
  const auto run = [=] HOLDFAST_LAMBDA(const Group& group, int64_t row,
                                       int64_t begin, int64_t end) {
    Acc acc = R::Init();
    for (int64_t j = begin + group.rank; j < end; j += group.size) {
      acc = R::Combine(acc, load(row, j));
    }
    return group.Reduce(acc, CombineOf<R>());
  };
  if (segments == 1) {
    return ForEachRow(context, rows, shape.group,
                      [=] HOLDFAST_LAMBDA(const Group& group, int64_t row) {
                        const Acc acc = run(group, row, 0, count);
                        if (group.rank == 0) write(row, acc);
                      });
  }
  Acc* partial =
      static_cast<Acc*>(context.Scratch(rows * segments * sizeof(Acc)));
  if (partial == nullptr) return NoScratch();
  // Segment s of row r is work item s * rows + r: neighbouring rows stay
  // neighbours.
  absl::Status s = ForEachRow(
      context, rows * segments, shape.group,
      [=] HOLDFAST_LAMBDA(const Group& group, int64_t item) {
        const int64_t row = item % rows, begin = item / rows * length;
        const int64_t end = begin + length < count ? begin + length : count;
        const Acc acc = run(group, row, begin, end);
        if (group.rank == 0) partial[item] = acc;
      });
  if (!s.ok()) return s;
  return ForEachRow(context, rows, rows >= 4096 ? 1 : GroupSize(segments),
                    [=] HOLDFAST_LAMBDA(const Group& group, int64_t row) {
                      Acc acc = R::Init();
                      for (int64_t i = group.rank; i < segments;
                           i += group.size) {
                        acc = R::Combine(acc, partial[i * rows + row]);
                      }
                      acc = group.Reduce(acc, CombineOf<R>());
                      if (group.rank == 0) write(row, acc);
                    });
}

// A tensor's dimensions, split into those that stay and those that go.
struct DimSplit {
  Offsets<1> kept, reduced;
  bool columns = false;
};

// `dims` as in the call: may be negative; empty means all.
inline absl::Status SplitDims(const TensorSpec& spec,
                              absl::Span<const int64_t> dims, DimSplit* split) {
  uint32_t mask = dims.empty() ? ~uint32_t{0} : 0;
  for (int64_t dim : dims) {
    absl::StatusOr<int> d = NormalizeDim(dim, spec.rank());
    if (!d.ok()) return d.status();
    mask |= uint32_t{1} << *d;
  }
  Dims shape[2], strides[2];
  for (int d = 0; d < spec.rank(); ++d) {
    const int part = mask >> d & 1;
    shape[part].push_back(spec.shape[d]);
    strides[part].push_back(spec.strides[d]);
  }
  split->kept = MakeOffsets<1>(shape[0], {strides[0]});
  split->reduced = MakeOffsets<1>(shape[1], {strides[1]});
  const auto last = [](const Offsets<1>& o) {
    return o.rank == 0 ? int64_t{1} << 62 : o.strides[0][o.rank - 1];
  };
  split->columns = last(split->kept) < last(split->reduced);
  return absl::OkStatus();
}

// The dimensions that the call's `dim` names; none names all.
inline absl::Status SplitOptional(const Attrs& attrs, const TensorSpec& spec,
                                  DimSplit* split) {
  const AttrValue& dim = attrs.Get("dim");
  const Dims* list = std::get_if<Dims>(&dim);
  return SplitDims(spec, list == nullptr ? Dims() : *list, split);
}

// Reduces a tensor: load(element) makes an Acc of an element of type T.
template <typename R, typename T, typename Write>
absl::Status ReduceTensor(KernelContext& context, const DimSplit& split,
                          const T* data, Write write) {
  const Offsets<1> kept = split.kept, reduced = split.reduced;
  return ReduceRows<R>(
      context, kept.numel, reduced.numel, split.columns,
      [=] HOLDFAST_LAMBDA(int64_t row, int64_t j) {
        int64_t base, at;
        kept.At(row, &base);
        reduced.At(j, &at);
        return R::One(LoadStored<T>(data, base + at));
      },
      write);
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_REDUCE_H_
