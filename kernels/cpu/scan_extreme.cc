// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// cummax, cummin: the extreme so far and the last position that has it. NaN
// beats everything.
#include <algorithm>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/scan.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {
namespace {

template <typename T, bool kMax>
HOLDFAST_INLINE bool Replaces(T x, T best) {
  const bool reaches = kMax ? x >= best : x <= best;
  if constexpr (std::is_floating_point_v<T>) {
    return (x != x) | (reaches & (best == best));
  } else {
    return reaches;
  }
}

// The steps [begin, end) of a run. `bests` and `places`: of its columns, what
// the steps before have left.
template <typename T, bool kMax>
struct ExtremesBody {
  static HOLDFAST_INLINE int Run(const T* in, T* values, int64_t* indices,
                                 int64_t begin, int64_t end, int64_t stride,
                                 int64_t cols, T* bests, int64_t* places) {
    T best[kScanCols];
    int64_t found[kScanCols];
    if (begin == 0) {
      for (int64_t j = 0; j < cols; ++j) {
        values[j] = best[j] = LoadElement(in + j);
        indices[j] = found[j] = 0;
      }
      begin = 1;
    } else {
      std::copy(bests, bests + cols, best);
      std::copy(places, places + cols, found);
    }
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i * stride;
      for (int64_t j = 0; j < cols; ++j) {
        const T x = LoadElement(in + row + j);
        const bool replaces = Replaces<T, kMax>(x, best[j]);
        values[row + j] = best[j] = replaces ? x : best[j];
        indices[row + j] = found[j] = replaces ? i : found[j];
      }
    }
    std::copy(best, best + cols, bests);
    std::copy(found, found + cols, places);
    return 0;
  }
};

template <bool kMax>
absl::Status Extremes(KernelContext& context, const Attrs& attrs,
                      const TensorView& input,
                      absl::Span<const TensorView> outputs) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView view;
  absl::Status s = MakeContiguous(context, input, out.dtype, &spec, &view);
  if (!s.ok()) return s;
  absl::StatusOr<ScanShape> shape = MakeScanShape(out, attrs.Int("dim"));
  if (!shape.ok()) return shape.status();
  return DispatchDType(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    ForEachScan(context, *shape, [&](int64_t at, int64_t cols, int64_t runs) {
      for (; runs > 0; --runs, at += shape->n * shape->inner) {
        T best[kScanCols];
        int64_t found[kScanCols];
        SerialFor(context, shape->n, ScanPiece(cols),
                  [&](int64_t begin, int64_t end) {
                    Vectorised<ExtremesBody<T, kMax>>(
                        static_cast<const T*>(view.as<T>() + at),
                        outputs[0].as<T>() + at, outputs[1].as<int64_t>() + at,
                        begin, end, shape->inner, cols, best + 0, found + 0);
                  });
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace

HOLDFAST_CPU_KERNEL(cummax) {
  return Extremes<true>(context, attrs, inputs[0], outputs);
}
HOLDFAST_CPU_KERNEL(cummin) {
  return Extremes<false>(context, attrs, inputs[0], outputs);
}

}  // namespace holdfast::cpu
