// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// histogram: elements counted, or their weights summed (in any order), by the
// bin they fall into.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/lanes.h"
#include "kernels/histogram_bins.h"

namespace holdfast::cuda {
namespace {

// Waits.
template <typename T>
absl::Status CheckFinite(KernelContext& context, const T* edges, int64_t bins) {
  absl::StatusOr<T> low = ReadElement(context, edges);
  if (!low.ok()) return low.status();
  absl::StatusOr<T> high = ReadElement(context, edges + bins);
  if (!high.ok()) return high.status();
  if (std::isfinite(*low) && std::isfinite(*high)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "[histogram] range of [", *low, ", ", *high, "] is not finite"));
}

template <typename T>
absl::Status Count(KernelContext& context, const T* edges, int64_t bins,
                   bool uniform, const T* values, const T* weights, int64_t n,
                   double* counts) {
  absl::Status s = Cuda(context).FillBytes(counts, 0, bins * sizeof(double));
  if (!s.ok()) return s;
  // Sums of ones are the same in any order.
  const Lanes lanes = weights == nullptr ? Lanes{n, 1, 1} : Lanes{1, n, 1};
  return ForEachInLanes(context, lanes, [=] HOLDFAST_LAMBDA(int64_t i) {
    const int64_t bin = HistogramBins<T>(edges, bins, uniform).Find(values[i]);
    if (bin < 0) return;
    AtomicAdd(counts + bin,
              weights == nullptr ? 1.0 : static_cast<double>(weights[i]));
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(histogram) {
  const TensorView& out = outputs[0];
  const int64_t bins = out.spec->numel();
  if (bins == 0) return absl::OkStatus();
  ContiguousOperands<3> in;
  absl::Status s = in.Make(context, inputs, out.spec->dtype);
  if (!s.ok()) return s;
  const TensorSpec spec = ContiguousSpec(DType::kFloat64, {bins});
  const TensorView counts = {ScratchOf<double>(context, bins), &spec};
  if (counts.data == nullptr) return NoScratch();
  const bool uniform = attrs.Bool("uniform");
  s = DispatchFloat(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if (uniform) {
      absl::Status finite = CheckFinite<T>(context, in.as<T>(1), bins);
      if (!finite.ok()) return finite;
    }
    return Count<T>(context, in.as<T>(1), bins, uniform, in.as<T>(0),
                    in.as<T>(2), inputs[0].spec->numel(), counts.as<double>());
  });
  return s.ok() ? CudaCopy(context, counts, out) : s;
}

}  // namespace holdfast::cuda
