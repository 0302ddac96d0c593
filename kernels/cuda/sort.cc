// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// sort, topk, kthvalue, median, mode: rows of keys whose unsigned order is
// that of the values, sorted whole; then the places that the op wants.
#include "kernels/cuda/sort.h"

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/offsets.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/sort_keys.h"

namespace holdfast::cuda {
namespace {

// Rows along one dimension of the input and of outputs that keep it or lack it.
struct Rows {
  Offsets<3> offsets;  // of a row: input, first output, second output
  int64_t count = 1, n = 1, step = 1, out_step = 1;
};

absl::StatusOr<Rows> MakeRows(const TensorSpec& input, int64_t dim,
                              const TensorSpec& output) {
  Rows rows;
  absl::StatusOr<int> along = NormalizeDim(dim, input.rank());
  if (!along.ok()) return along.status();
  Dims shape, in, out;
  const bool same_rank = input.rank() == output.rank();
  if (input.rank() > 0) {
    rows.n = input.shape[*along];
    rows.step = input.strides[*along];
    if (same_rank) rows.out_step = output.strides[*along];
  }
  for (int d = 0; d < input.rank(); ++d) {
    if (d == *along) continue;
    rows.count *= input.shape[d];
    shape.push_back(input.shape[d]);
    in.push_back(input.strides[d]);
    out.push_back(output.strides[same_rank || d < *along ? d : d - 1]);
  }
  rows.offsets = MakeOffsets<3>(shape, {in, out, out});
  return rows;
}

// Keys and indices of every row, sorted.
struct SortedRows {
  const uint64_t* keys = nullptr;
  const int64_t* indices = nullptr;
};

template <typename T>
absl::Status SortAs(KernelContext& context, const Rows& rows, bool descending,
                    const T* data, SortedRows* sorted) {
  const int64_t n = rows.n, total = rows.count * n;
  uint64_t* const keys = ScratchOf<uint64_t>(context, total);
  uint64_t* const sorted_keys = ScratchOf<uint64_t>(context, total);
  int64_t* const indices = ScratchOf<int64_t>(context, total);
  int64_t* const sorted_indices = ScratchOf<int64_t>(context, total);
  if (keys == nullptr || sorted_keys == nullptr || indices == nullptr ||
      sorted_indices == nullptr) {
    return NoScratch();
  }
  const Offsets<3> offsets = rows.offsets;
  const int64_t step = rows.step;
  const uint64_t flip = descending ? ~uint64_t{0} : 0;
  absl::Status s = ForEach(context, total, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[3];
    offsets.At(i / n, at);
    const int64_t j = i % n;
    keys[i] = SortKeyOf(LoadStored<T>(data, at[0] + j * step)) ^ flip;
    indices[i] = j;
  });
  if (!s.ok()) return s;
  *sorted = {sorted_keys, sorted_indices};
  return SortRows(context, rows.count, n, keys, sorted_keys, indices,
                  sorted_indices);
}

// The first k of each row.
template <typename T>
absl::Status TakeFirst(KernelContext& context, const Rows& rows,
                       const SortedRows& sorted, int64_t k, const T* data,
                       T* values, int64_t* indices) {
  const Offsets<3> offsets = rows.offsets;
  const int64_t n = rows.n, step = rows.step, out_step = rows.out_step;
  const int64_t* const order = sorted.indices;
  return ForEach(context, rows.count * k, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[3];
    offsets.At(i / k, at);
    const int64_t j = i % k, from = order[i / k * n + j];
    values[at[1] + j * out_step] = LoadStored<T>(data, at[0] + from * step);
    indices[at[2] + j * out_step] = from;
  });
}

// Which of a row's sorted keys is the median: the lower one of two. NaN are the
// greatest keys; unless they are ignored, the first one is the median.
HOLDFAST_HD int64_t MedianPlace(const uint64_t* keys, int64_t n, bool floats,
                                bool ignore_nan) {
  int64_t numbers = n;
  if (floats) {
    int64_t begin = 0, size = n;  // of the keys, how many are below NaN
    while (size > 0) {
      const int64_t half = size / 2;
      const bool below = keys[begin + half] != ~uint64_t{0};
      begin = below ? begin + half + 1 : begin;
      size = below ? size - half - 1 : half;
    }
    numbers = begin;
    if (numbers < n && !ignore_nan) return numbers;
    if (numbers == 0) return 0;
  }
  return (numbers - 1) / 2;
}

// Where the longest run of equal keys ends, the first one's of several.
HOLDFAST_HD int64_t ModePlace(const uint64_t* keys, int64_t n) {
  int64_t longest = 0, end = 0;
  for (int64_t i = 0, start = 0; i < n; ++i) {
    if (keys[i] != keys[start]) start = i;
    if (i - start + 1 > longest) {
      longest = i - start + 1;
      end = i;
    }
  }
  return end;
}

// Which one of a row is wanted.
struct Wanted {
  enum Kind { kKth, kMedian, kMode } kind;
  int64_t kth = 0;  // from 0
  bool ignore_nan = false;

  HOLDFAST_HD int64_t Place(const uint64_t* keys, int64_t n,
                            bool floats) const {
    return kind == kKth    ? kth
           : kind == kMode ? ModePlace(keys, n)
                           : MedianPlace(keys, n, floats, ignore_nan);
  }
};

template <typename T>
absl::Status TakeOne(KernelContext& context, const Rows& rows,
                     const SortedRows& sorted, const Wanted& wanted,
                     const T* data, T* values, int64_t* indices) {
  const Offsets<3> offsets = rows.offsets;
  const int64_t n = rows.n, step = rows.step;
  const SortedRows order = sorted;
  return ForEach(context, rows.count, [=] HOLDFAST_LAMBDA(int64_t row) {
    int64_t at[3];
    offsets.At(row, at);
    const int64_t place =
        wanted.Place(order.keys + row * n, n, std::is_floating_point_v<T>);
    const int64_t from = order.indices[row * n + place];
    values[at[1]] = LoadStored<T>(data, at[0] + from * step);
    indices[at[2]] = from;
  });
}

template <typename T>
absl::Status SortFirst(KernelContext& context, const Rows& rows, int64_t k,
                       bool descending, const TensorView& input,
                       absl::Span<const TensorView> outputs) {
  SortedRows sorted;
  absl::Status s = SortAs<T>(context, rows, descending, input.as<T>(), &sorted);
  if (!s.ok()) return s;
  return TakeFirst<T>(context, rows, sorted, k, input.as<T>(),
                      outputs[0].as<T>(), outputs[1].as<int64_t>());
}

absl::Status First(KernelContext& context, const Attrs& attrs, int64_t k,
                   bool descending, const TensorView& input,
                   absl::Span<const TensorView> outputs) {
  absl::StatusOr<Rows> rows =
      MakeRows(*input.spec, attrs.Int("dim"), *outputs[0].spec);
  if (!rows.ok()) return rows.status();
  if (k < 0) k = rows->n;
  if (rows->count * rows->n == 0 || k == 0) return absl::OkStatus();
  return DispatchDType(input.spec->dtype, [&](auto tag) -> absl::Status {
    return SortFirst<typename decltype(tag)::type>(context, *rows, k,
                                                   descending, input, outputs);
  });
}

template <typename T>
absl::Status SortOne(KernelContext& context, const Rows& rows,
                     const Wanted& wanted, const TensorView& input,
                     absl::Span<const TensorView> outputs) {
  SortedRows sorted;
  absl::Status s = SortAs<T>(context, rows, false, input.as<T>(), &sorted);
  if (!s.ok()) return s;
  return TakeOne<T>(context, rows, sorted, wanted, input.as<T>(),
                    outputs[0].as<T>(), outputs[1].as<int64_t>());
}

absl::Status One(KernelContext& context, const Attrs& attrs,
                 const Wanted& wanted, const TensorView& input,
                 absl::Span<const TensorView> outputs) {
  absl::StatusOr<Rows> rows =
      MakeRows(*input.spec, attrs.Int("dim"), *outputs[0].spec);
  if (!rows.ok()) return rows.status();
  if (rows->count * rows->n == 0) return absl::OkStatus();
  return DispatchDType(input.spec->dtype, [&](auto tag) -> absl::Status {
    return SortOne<typename decltype(tag)::type>(context, *rows, wanted, input,
                                                 outputs);
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(sort) {
  return First(context, attrs, -1, attrs.Bool("descending"), inputs[0],
               outputs);
}

HOLDFAST_CUDA_KERNEL(topk) {
  return First(context, attrs, attrs.Int("k"), attrs.Bool("largest"), inputs[0],
               outputs);
}

HOLDFAST_CUDA_KERNEL(kthvalue) {
  return One(context, attrs, {Wanted::kKth, attrs.Int("k") - 1}, inputs[0],
             outputs);
}

HOLDFAST_CUDA_KERNEL(median) {
  return One(context, attrs, {Wanted::kMedian, 0, attrs.Bool("ignore_nan")},
             inputs[0], outputs);
}

HOLDFAST_CUDA_KERNEL(mode) {
  return One(context, attrs, {Wanted::kMode}, inputs[0], outputs);
}

}  // namespace holdfast::cuda
