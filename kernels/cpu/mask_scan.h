// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// MaskScan: where a tensor is not zero, found in two parallel passes: counts
// per chunk, then positions. The tensor may change between the passes (a client
// may share the memory); no chunk ever yields more than was counted in it, and
// what is missing is made up for with its first element. Thread-safety:
// CountMask is reentrant; a MaskScan is a plain value.
#ifndef HOLDFAST_KERNELS_CPU_MASK_SCAN_H_
#define HOLDFAST_KERNELS_CPU_MASK_SCAN_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/kernel.h"

namespace holdfast::cpu {

struct MaskScan {
  static constexpr int64_t kChunk = 16384;
  // Positions handed out together.
  static constexpr int64_t kPiece = 1024;

  const void* data = nullptr;  // row-major, without gaps
  int64_t numel = 0;
  int64_t chunks = 0;
  int64_t* starts = nullptr;  // [chunks + 1]: true elements before each chunk

  int64_t count() const { return starts[chunks]; }
};

// Elements that are not zero; narrow counters vectorise.
template <typename T>
struct CountTrueBody {
  static HOLDFAST_INLINE int64_t Run(const T* p, int64_t n) {
    int64_t total = 0;
    for (int64_t i = 0; i < n;) {
      const int64_t end = std::min<int64_t>(n, i + 4096);
      int32_t part = 0;
      for (; i < end; ++i) part += LoadElement(p + i) != T(0);
      total += part;
    }
    return total;
  }
};

// Fills in *scan for `view`, with scratch memory for the counts (and for the
// elements, unless they lie in order). REQUIRES: T is the view's type.
template <typename T>
absl::Status CountMask(KernelContext& context, const TensorView& view,
                       MaskScan* scan) {
  TensorSpec spec;
  TensorView dense;
  absl::Status s =
      MakeContiguous(context, view, view.spec->dtype, &spec, &dense);
  if (!s.ok()) return s;
  scan->data = dense.data;
  scan->numel = view.spec->numel();
  scan->chunks = (scan->numel + MaskScan::kChunk - 1) / MaskScan::kChunk;
  scan->starts = static_cast<int64_t*>(
      context.Scratch((scan->chunks + 1) * sizeof(int64_t)));
  if (scan->starts == nullptr) {
    return absl::ResourceExhaustedError("no scratch memory");
  }
  scan->starts[0] = 0;
  ParallelFor(context, scan->chunks, 4, [&](int64_t b, int64_t e) {
    for (int64_t c = b; c < e; ++c) {
      const int64_t first = c * MaskScan::kChunk;
      const int64_t n = std::min(MaskScan::kChunk, scan->numel - first);
      scan->starts[c + 1] = Vectorised<CountTrueBody<T>>(
          static_cast<const T*>(scan->data) + first, n);
    }
  });
  if (context.Stopped()) return absl::AbortedError("stopped");
  for (int64_t c = 0; c < scan->chunks; ++c) {
    scan->starts[c + 1] += scan->starts[c];
  }
  return absl::OkStatus();
}

// Calls fn(positions, n, rank): the row-major positions of n true elements that
// follow each other, of which `rank` precede the first. In parallel; every rank
// below count() comes exactly once. fn may use `positions` as it likes.
template <typename T, typename F>
void ForEachTrue(const KernelContext& context, const MaskScan& scan, F&& fn) {
  ParallelFor(context, scan.chunks, 4, [&](int64_t b, int64_t e) {
    int64_t positions[MaskScan::kPiece];
    for (int64_t c = b; c < e; ++c) {
      int64_t rank = scan.starts[c];
      int64_t left = scan.starts[c + 1] - rank;
      const int64_t end = std::min(scan.numel, (c + 1) * MaskScan::kChunk);
      for (int64_t i = c * MaskScan::kChunk; i < end && left > 0;) {
        const int64_t stop = std::min(end, i + MaskScan::kPiece);
        const T* p = static_cast<const T*>(scan.data);
        int64_t n = 0;
        for (; i < stop; ++i) {
          positions[n] = i;
          n += LoadElement(p + i) != T(0);
        }
        n = std::min(n, left);
        if (n > 0) fn(positions, n, rank);
        rank += n;
        left -= n;
      }
      while (left > 0) {
        const int64_t n = std::min(left, MaskScan::kPiece);
        std::fill(positions, positions + n, c * MaskScan::kChunk);
        fn(positions, n, rank);
        rank += n;
        left -= n;
      }
    }
  });
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_MASK_SCAN_H_
