// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// histogram: elements counted, or their weights summed, by the bin they fall
// into.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/histogram_bins.h"

namespace holdfast::cpu {
namespace {

template <typename T>
absl::Status Count(KernelContext& context, const T* edges, int64_t bins,
                   bool uniform, const T* values, const T* weights, int64_t n,
                   T* out) {
  // Parts depend on the sizes alone: sums of weights come out equal for every
  // number of threads.
  const int64_t parts = std::clamp<int64_t>(
      std::min(n / 32768, (int64_t{1} << 22) / bins), 1, 16);
  double* counts =
      static_cast<double*>(context.Scratch(parts * bins * sizeof(double)));
  T* own_edges = static_cast<T*>(context.Scratch((bins + 1) * sizeof(T)));
  if (counts == nullptr || own_edges == nullptr) {
    return absl::ResourceExhaustedError("scratch memory for a histogram");
  }
  std::memcpy(own_edges, edges, (bins + 1) * sizeof(T));
  if (uniform &&
      !(std::isfinite(own_edges[0]) && std::isfinite(own_edges[bins]))) {
    return absl::InvalidArgumentError(
        absl::StrCat("[histogram] range of [", own_edges[0], ", ",
                     own_edges[bins], "] is not finite"));
  }
  const HistogramBins<T> finder(own_edges, bins, uniform);
  ParallelFor(context, parts, 1, [&](int64_t b, int64_t e) {
    for (int64_t part = b; part < e; ++part) {
      double* count = counts + part * bins;
      std::fill(count, count + bins, 0.0);
      const int64_t end = n * (part + 1) / parts;
      for (int64_t i = n * part / parts; i < end; ++i) {
        const int64_t bin = finder.Find(values[i]);
        if (bin < 0) continue;
        count[bin] += weights == nullptr ? 1.0 : double{weights[i]};
      }
    }
  });
  for (int64_t i = 0; i < bins; ++i) {
    double total = 0;
    for (int64_t part = 0; part < parts; ++part) {
      total += counts[part * bins + i];
    }
    out[i] = static_cast<T>(total);
  }
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_CPU_KERNEL(histogram) {
  const TensorView& out = outputs[0];
  const int64_t bins = out.spec->numel();
  if (bins == 0) return absl::OkStatus();
  const DType dtype = out.spec->dtype;
  TensorSpec specs[3];
  TensorView views[3];
  for (int i = 0; i < 3; ++i) {
    if (!inputs[i].present()) continue;
    absl::Status s =
        MakeContiguous(context, inputs[i], dtype, &specs[i], &views[i]);
    if (!s.ok()) return s;
  }
  return DispatchFloat(dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return Count<T>(context, views[1].as<T>(), bins, attrs.Bool("uniform"),
                    views[0].as<T>(), views[2].as<T>(), inputs[0].spec->numel(),
                    out.as<T>());
  });
}

}  // namespace holdfast::cpu
