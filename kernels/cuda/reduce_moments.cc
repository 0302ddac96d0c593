// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// var_mean.
#include <algorithm>
#include <limits>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/reducers.h"

namespace holdfast::cuda {
namespace {

template <typename T>
absl::Status VarMean(KernelContext& context, const DimSplit& split,
                     double correction, const TensorView& input,
                     absl::Span<const TensorView> outputs) {
  const double count = static_cast<double>(split.reduced.numel);
  const double freedom = std::max(count - correction, 0.0);
  const Operand var(outputs[0]), mean(outputs[1]);
  return ReduceTensor<MomentsOf<T>, T>(
      context, split, input.as<T>(),
      [=] HOLDFAST_LAMBDA(int64_t row, Moments m) {
        const double nothing = std::numeric_limits<double>::quiet_NaN();
        var.Store(row, m.count == 0 ? nothing : m.squares / freedom);
        mean.Store(row, m.count == 0 ? nothing : m.mean);
      });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(var_mean) {
  DimSplit split;
  absl::Status s = SplitOptional(attrs, *inputs[0].spec, &split);
  if (!s.ok()) return s;
  return DispatchStoredFloat(
      inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
        return VarMean<typename decltype(tag)::type>(
            context, split, attrs.Float("correction"), inputs[0], outputs);
      });
}

}  // namespace holdfast::cuda
