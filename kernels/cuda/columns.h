// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The windows of planes as the columns of matrices, and their adjoint. Both are
// gathers: each element of the result is one thread's, in a fixed order.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_COLUMNS_H_
#define HOLDFAST_KERNELS_CUDA_COLUMNS_H_

#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/windows.h"

namespace holdfast::cuda {

// [planes, taps, columns] from [planes, plane]; what is outside is 0.
template <typename Bits>
absl::Status UnfoldPlanes(KernelContext& context, const Windows& w,
                          int64_t planes, const Bits* in, Bits* columns) {
  const int64_t per_plane = w.taps() * w.columns();
  return ForEach(context, planes * per_plane, [=] HOLDFAST_LAMBDA(int64_t i) {
    const int64_t column = i % w.columns();
    const int64_t tap = i / w.columns() % w.taps();
    const int64_t place = w.PlaceOf(column, tap);
    columns[i] = place < 0 ? Bits{} : in[i / per_plane * w.plane() + place];
  });
}

// [planes, plane]: the sum of the column elements that each was taken to.
template <typename S>
absl::Status FoldPlanes(KernelContext& context, const Windows& w,
                        int64_t planes, const S* columns, S* out) {
  using T = ComputeOf<S>;
  const int64_t per_plane = w.taps() * w.columns();
  return ForEach(context, planes * w.plane(), [=] HOLDFAST_LAMBDA(int64_t i) {
    const int64_t plane = i / w.plane(), place = i % w.plane();
    T sum = 0;
    for (int64_t tap = 0; tap < w.taps(); ++tap) {
      const int64_t column = w.ColumnOf(place, tap);
      if (column < 0) continue;
      sum +=
          Convert<T>(columns[plane * per_plane + tap * w.columns() + column]);
    }
    out[i] = Convert<S>(sum);
  });
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_COLUMNS_H_
