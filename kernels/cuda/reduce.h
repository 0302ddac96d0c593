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
#include "kernels/cuda/packs.h"
#include "kernels/cuda/reducers.h"
#include "ops/attrs.h"
#include "ops/tensor_spec.h"

namespace holdfast::cuda {

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

// Segments for `rows` rows of `count` steps by groups of `group` threads.
inline ReduceShape CutRows(int64_t rows, int64_t count, int group) {
  constexpr int64_t kThreads = 1 << 18;  // enough for any GPU
  ReduceShape shape;
  shape.group = group;
  // A segment keeps its threads busy for a while.
  const int64_t least = group == 1 ? 64 : 16 * group;
  const int64_t wanted = kThreads / std::max<int64_t>(rows * group, 1);
  shape.segments =
      std::clamp<int64_t>(std::min(wanted, count / least), 1, 1024);
  shape.length = (count + shape.segments - 1) / shape.segments;
  return shape;
}

// `columns`: neighbouring rows are neighbours in memory, so that a thread each
// reads best.
inline ReduceShape PlanReduce(int64_t rows, int64_t count, bool columns) {
  return CutRows(rows, count, columns && rows >= kWarp ? 1 : GroupSize(count));
}

// The same of rows that are read in packs of 16 bytes.
inline ReduceShape PlanPacks(int64_t rows, int64_t packs) {
  return CutRows(rows, packs, packs <= 4 ? 1 : GroupSize(4 * packs));
}

// Steps begin, begin + by, ... before `end`. Several of them are loaded before
// the first is taken: memory is far away.
template <typename R, typename Line>
HOLDFAST_HD typename R::Acc TakeLine(const Line& line, int64_t begin,
                                     int64_t by, int64_t end) {
  constexpr int kBatch = Line::kBatch;
  typename R::Acc acc = R::Init();
  int64_t j = begin;
  for (; j + (kBatch - 1) * by < end; j += kBatch * by) {
    typename Line::Loaded loaded[kBatch];
    for (int k = 0; k < kBatch; ++k) loaded[k] = line.Load(j + k * by);
    for (int k = 0; k < kBatch; ++k) acc = line.Take(acc, loaded[k]);
  }
  for (; j < end; j += by) acc = line.Take(acc, line.Load(j));
  return acc;
}

// (*load)(row, j) as a line of one row's elements. Load begins what Take puts
// to a result so far. A copy of *load would be local memory: it has Offsets.
template <typename R, typename F>
struct ElementLine {
  using Loaded = typename R::Acc;
  static constexpr int kBatch = sizeof(Loaded) <= 8 ? 8 : 4;
  const F* load;
  int64_t row;

  HOLDFAST_HD Loaded Load(int64_t j) const { return (*load)(row, j); }
  HOLDFAST_HD Loaded Take(Loaded acc, Loaded loaded) const {
    return R::Combine(acc, loaded);
  }
  HOLDFAST_HD Loaded TakeSteps(int64_t begin, int64_t by, int64_t end) const {
    return TakeLine<R>(*this, begin, by, end);
  }
  // What is no whole step, after all of those.
  HOLDFAST_HD Loaded TakeRest(Loaded acc, int, int) const { return acc; }
};

// write(row, acc) for every row, acc being R's combination of what `count`
// steps of lines(row) take, or R::Init() if there is nothing.
template <typename R, typename Lines, typename Write>
absl::Status ReduceLines(KernelContext& context, int64_t rows, int64_t count,
                         const ReduceShape& shape, Lines lines, Write write) {
  using Acc = typename R::Acc;
  const int64_t segments = shape.segments, length = shape.length;
  if (segments == 1) {
    return ForEachRow(context, rows, shape.group,
                      [=] HOLDFAST_LAMBDA(const Group& group, int64_t row) {
                        const auto line = lines(row);
                        Acc acc = line.TakeSteps(group.rank, group.size, count);
                        acc = line.TakeRest(acc, group.rank, group.size);
                        acc = group.Reduce(acc, CombineOf<R>());
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
        const auto line = lines(row);
        Acc acc = line.TakeSteps(begin + group.rank, group.size, end);
        if (item / rows == segments - 1) {
          acc = line.TakeRest(acc, group.rank, group.size);
        }
        acc = group.Reduce(acc, CombineOf<R>());
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

template <typename R, typename F>
struct ElementLines {
  F load;
  HOLDFAST_HD ElementLine<R, F> operator()(int64_t row) const {
    return {&load, row};
  }
};

// The same of load(row, j) for 0 <= j < count.
template <typename R, typename F, typename Write>
absl::Status ReduceRows(KernelContext& context, int64_t rows, int64_t count,
                        bool columns, F load, Write write) {
  return ReduceLines<R>(context, rows, count, PlanReduce(rows, count, columns),
                        ElementLines<R, F>{load}, write);
}

// A tensor's dimensions, split into those that stay and those that go.
struct DimSplit {
  Offsets<1> kept, reduced;
  bool columns = false;
};

// `dims` as in the call: may be negative; empty means all.
inline absl::Status SplitDims(const TensorSpec& spec,
                              absl::Span<const int64_t> dims, DimSplit* split) {
  uint64_t mask = dims.empty() ? ~uint64_t{0} : 0;
  for (int64_t dim : dims) {
    absl::StatusOr<int> d = NormalizeDim(dim, spec.rank());
    if (!d.ok()) return d.status();
    mask |= uint64_t{1} << *d;
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

// A row of a tensor, wherever its elements are.
template <typename R, typename T>
struct StridedLine {
  using Acc = typename R::Acc;
  using Loaded = T;
  static constexpr int kBatch = 4;
  const T* data;
  const Offsets<1>* reduced;

  HOLDFAST_HD T Load(int64_t j) const {
    int64_t at;
    reduced->At(j, &at);
    return LoadStored<T>(data, at);
  }
  HOLDFAST_HD Acc Take(Acc acc, T element) const {
    return R::Combine(acc, R::One(element));
  }
  HOLDFAST_HD Acc TakeSteps(int64_t begin, int64_t by, int64_t end) const {
    return TakeLine<R>(*this, begin, by, end);
  }
  HOLDFAST_HD Acc TakeRest(Acc acc, int, int) const { return acc; }
};

template <typename R, typename T>
struct StridedLines {
  const T* data;
  Offsets<1> kept, reduced;

  HOLDFAST_HD StridedLine<R, T> operator()(int64_t row) const {
    int64_t base;
    kept.At(row, &base);
    return {data + base, &reduced};
  }
};

// Whole packs of adjacent elements, which are aligned or not.
template <typename R, typename T, bool kAligned>
struct Packs {
  using Acc = typename R::Acc;
  static constexpr int kWidth = kPackWidth<T>;
  struct Loaded {
    T element[kWidth];
  };
  static constexpr int kBatch = kAligned ? 4 : 1;
  const T* data;

  HOLDFAST_HD Loaded Load(int64_t j) const {
    const T* const from = data + j * kWidth;
    Loaded pack;
    if constexpr (kAligned) {
      LoadPack<kWidth>(from, pack.element);
    } else {
      for (int i = 0; i < kWidth; ++i) pack.element[i] = from[i];
    }
    return pack;
  }
  HOLDFAST_HD Acc Take(Acc acc, const Loaded& pack) const {
    return R::Combine(acc, TogetherOf<R>::Of(pack.element));
  }
};

// A row of `count` adjacent elements, in packs. Who takes which element does
// not depend on where the row begins: equal calls give equal bits.
template <typename R, typename T>
struct PackedLine {
  using Acc = typename R::Acc;
  const T* data;
  int64_t count;

  HOLDFAST_HD Acc TakeSteps(int64_t begin, int64_t by, int64_t end) const {
    return Aligned(data)
               ? TakeLine<R>(Packs<R, T, true>{data}, begin, by, end)
               : TakeLine<R>(Packs<R, T, false>{data}, begin, by, end);
  }
  HOLDFAST_HD Acc TakeRest(Acc acc, int rank, int size) const {
    const int64_t packs = count / kPackWidth<T>;
    for (int64_t i = packs * kPackWidth<T> + rank; i < count; i += size) {
      acc = R::Combine(acc, R::One(data[i]));
    }
    return acc;
  }
};

template <typename R, typename T>
struct PackedLines {
  const T* data;
  Offsets<1> kept;
  int64_t count;

  HOLDFAST_HD PackedLine<R, T> operator()(int64_t row) const {
    int64_t base;
    kept.At(row, &base);
    return {data + base, count};
  }
};

// Types with which models compute much: their packs are worth their code.
template <typename T>
inline constexpr bool kReadsPacks =
    std::is_same_v<ComputeOf<T>, float> || std::is_same_v<T, double>;

// Reduces a tensor of elements stored as T, each of them R::One of it.
template <typename R, typename T, typename Write>
absl::Status ReduceTensor(KernelContext& context, const DimSplit& split,
                          const T* data, Write write) {
  const int64_t rows = split.kept.numel, count = split.reduced.numel;
  if constexpr (kReadsPacks<T>) {
    if (split.reduced.linear()) {
      const int64_t packs = count / kPackWidth<T>;
      return ReduceLines<R>(context, rows, packs, PlanPacks(rows, packs),
                            PackedLines<R, T>{data, split.kept, count}, write);
    }
  }
  return ReduceLines<R>(
      context, rows, count, PlanReduce(rows, count, split.columns),
      StridedLines<R, T>{data, split.kept, split.reduced}, write);
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_REDUCE_H_
