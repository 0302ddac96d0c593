// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The loop structure of scans: results that run along one dimension and depend
// on everything before. Where neighbours in memory belong to different runs,
// they run side by side.
// Thread-safety: ScanShape is a plain value; ForEachScan is reentrant.
#ifndef HOLDFAST_KERNELS_CPU_SCAN_H_
#define HOLDFAST_KERNELS_CPU_SCAN_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/cpu/parallel.h"
#include "kernels/kernel.h"
#include "ops/tensor_spec.h"

namespace holdfast::cpu {

// A contiguous tensor seen as [outer, n, inner]; runs go along n.
struct ScanShape {
  int64_t outer = 1, n = 1, inner = 1;
};

// REQUIRES: spec.numel() > 0.
inline absl::StatusOr<ScanShape> MakeScanShape(const TensorSpec& spec,
                                               int64_t dim_attr) {
  absl::StatusOr<int> dim = NormalizeDim(dim_attr, spec.rank());
  if (!dim.ok()) return dim.status();
  ScanShape shape;
  for (int d = *dim; d < spec.rank(); ++d) {
    (d == *dim ? shape.n : shape.inner) *= spec.shape[d];
  }
  shape.outer = spec.numel() / shape.n / shape.inner;
  return shape;
}

// Runs that are taken side by side: their states fit the first-level cache.
inline constexpr int64_t kScanCols = 256;

// A run may be long: steps of one between two looks, `cols` runs side by side.
inline int64_t ScanPiece(int64_t cols) {
  return std::max<int64_t>(1, (int64_t{1} << 17) / cols);
}

// Calls fn(first, cols, runs): `runs` times `cols` runs side by side, the first
// of which begins at element `first`. Each steps by shape.inner; the next ones
// begin shape.n * shape.inner further.
template <typename F>
void ForEachScan(const KernelContext& context, const ScanShape& shape, F&& fn) {
  const int64_t tiles = (shape.inner + kScanCols - 1) / kScanCols;
  const int64_t cost = shape.n * std::min(shape.inner, kScanCols);
  const int64_t grain = std::max<int64_t>(1, 16384 / cost);
  ParallelFor(context, shape.outer * tiles, grain, [&](int64_t b, int64_t e) {
    if (tiles == 1) {
      fn(b * shape.n * shape.inner, shape.inner, e - b);
      return;
    }
    for (int64_t u = b; u < e; ++u) {
      const int64_t first = u % tiles * kScanCols;
      fn(u / tiles * shape.n * shape.inner + first,
         std::min(kScanCols, shape.inner - first), int64_t{1});
    }
  });
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_SCAN_H_
