// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// lexsort: the order of a matrix's rows by their first element, then the
// second, and so on: stable sorts by one column after the other, the last
// first.
#include <utility>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sort.h"
#include "kernels/cuda/sort_keys.h"

namespace holdfast::cuda {
namespace {

// keys[i]: that of column `column` in row order[i].
template <typename T>
struct ColumnKeys {
  const T* data;
  int64_t row_stride, offset;
  const int64_t* order;
  uint64_t* keys;

  HOLDFAST_HD void operator()(int64_t i) const {
    keys[i] = SortKeyOf(LoadStored<T>(data, order[i] * row_stride + offset));
  }
};

template <typename T>
absl::Status SortByColumns(KernelContext& context, const TensorView& in,
                           int64_t* order) {
  const int64_t n = in.spec->shape[0], columns = in.spec->shape[1];
  uint64_t* const keys = ScratchOf<uint64_t>(context, n);
  uint64_t* const sorted_keys = ScratchOf<uint64_t>(context, n);
  int64_t* const other = ScratchOf<int64_t>(context, n);
  if (keys == nullptr || sorted_keys == nullptr || other == nullptr) {
    return NoScratch();
  }
  absl::Status s;
  int64_t *from = order, *to = other;
  for (int64_t column = columns - 1; column >= 0 && s.ok(); --column) {
    s = ForEach(context, n,
                ColumnKeys<T>{in.as<T>(), in.spec->strides[0],
                              column * in.spec->strides[1], from, keys});
    if (s.ok()) s = SortRows(context, 1, n, keys, sorted_keys, from, to);
    std::swap(from, to);
  }
  if (!s.ok() || from == order) return s;
  return Cuda(context).CopyOnDevice(order, from, n * sizeof(int64_t));
}

absl::Status CountUp(KernelContext& context, int64_t* order, int64_t n) {
  return ForEach(context, n, [=] HOLDFAST_LAMBDA(int64_t i) { order[i] = i; });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(lexsort) {
  const TensorView& in = inputs[0];
  const int64_t n = in.spec->shape[0];
  int64_t* const order = outputs[0].as<int64_t>();
  absl::Status s = CountUp(context, order, n);
  if (!s.ok() || n < 2 || in.spec->shape[1] == 0) return s;
  return DispatchDType(in.spec->dtype, [&](auto tag) -> absl::Status {
    return SortByColumns<typename decltype(tag)::type>(context, in, order);
  });
}

}  // namespace holdfast::cuda
