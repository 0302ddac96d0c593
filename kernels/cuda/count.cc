// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// bincount: counts, how many of which the elements tell. Weights are added in
// any order: their sums may differ in the last bits from run to run.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/lanes.h"
#include "kernels/cuda/reduce.h"

namespace holdfast::cuda {
namespace {

struct Range {
  int64_t low, high;
};
struct RangeOf {
  using Acc = Range;
  static HOLDFAST_HD Acc Init() { return {0, -1}; }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) {
    return {a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
  }
};

// The smallest and the largest element of a vector, 0 and -1 included. Waits.
absl::StatusOr<Range> FindRange(KernelContext& context,
                                const TensorView& view) {
  Range* const found = ScratchOf<Range>(context, 1);
  if (found == nullptr) return NoScratch();
  const Operand in(view);
  const int64_t stride = view.spec->strides[0];
  absl::Status s = ReduceRows<RangeOf>(
      context, 1, view.spec->numel(), /*columns=*/false,
      [=] HOLDFAST_LAMBDA(int64_t, int64_t i) {
        const int64_t value = in.Load<int64_t>(i * stride);
        return Range{value, value};
      },
      [=] HOLDFAST_LAMBDA(int64_t, Range range) { *found = range; });
  if (!s.ok()) return s;
  return ReadElement(context, found);
}

absl::Status CountOnes(KernelContext& context, const TensorView& view,
                       int64_t bins, int64_t* counts) {
  absl::Status s = Cuda(context).FillBytes(counts, 0, bins * sizeof(int64_t));
  if (!s.ok()) return s;
  const Operand in(view);
  const int64_t stride = view.spec->strides[0];
  return ForEach(context, view.spec->numel(), [=] HOLDFAST_LAMBDA(int64_t i) {
    const int64_t bin = in.Load<int64_t>(i * stride);
    if (InRange(bin, bins)) AtomicAdd(counts + bin, int64_t{1});
  });
}

absl::Status AddWeights(KernelContext& context, const TensorView& view,
                        const TensorView& weights, int64_t bins, double* sums) {
  absl::Status s = Cuda(context).FillBytes(sums, 0, bins * sizeof(double));
  if (!s.ok()) return s;
  const Operand in(view), weight(weights);
  const int64_t stride = view.spec->strides[0];
  const int64_t weight_stride = weights.spec->strides[0];
  const Lanes lanes = {1, view.spec->numel(), 1};
  return ForEachInLanes(context, lanes, [=] HOLDFAST_LAMBDA(int64_t i) {
    const int64_t bin = in.Load<int64_t>(i * stride);
    if (!InRange(bin, bins)) return;
    AtomicAdd(sums + bin, weight.Load<double>(i * weight_stride));
  });
}

}  // namespace

HOLDFAST_CUDA_SIZES(bincount) {
  absl::StatusOr<Range> range = FindRange(context, inputs[0]);
  if (!range.ok()) return range.status();
  if (range->low < 0 || range->high == std::numeric_limits<int64_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[bincount] bincount only supports 1-d non-negative integral inputs. "
        "Got ",
        range->low < 0 ? range->low : range->high, "."));
  }
  sizes[0] = std::max(range->high + 1, attrs.Int("minlength"));
  return absl::OkStatus();
}

HOLDFAST_CUDA_KERNEL(bincount) {
  const TensorView& out = outputs[0];
  const int64_t bins = out.spec->numel();
  if (bins == 0) return absl::OkStatus();
  if (!inputs[1].present()) {
    return CountOnes(context, inputs[0], bins, out.as<int64_t>());
  }
  const TensorSpec spec = ContiguousSpec(DType::kFloat64, {bins});
  TensorView sums = out;
  if (out.spec->dtype != DType::kFloat64) {
    sums = {ScratchOf<double>(context, bins), &spec};
  }
  if (sums.data == nullptr) return NoScratch();
  absl::Status s =
      AddWeights(context, inputs[0], inputs[1], bins, sums.as<double>());
  return s.ok() && sums.data != out.data ? CudaCopy(context, sums, out) : s;
}

}  // namespace holdfast::cuda
