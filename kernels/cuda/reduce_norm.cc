// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// vector_norm.
#include <cmath>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/reducers.h"

namespace holdfast::cuda {
namespace {

template <typename R, typename T>
absl::Status Norm(KernelContext& context, const DimSplit& split, bool root,
                  const TensorView& input, const TensorView& output) {
  const Operand out(output);
  return ReduceTensor<R, T>(
      context, split, input.as<T>(),
      [=] HOLDFAST_LAMBDA(int64_t row, typename R::Acc acc) {
        const double value = static_cast<double>(acc);
        out.Store(row, root ? std::sqrt(value) : value);
      });
}

template <typename T>
absl::Status NormAs(KernelContext& context, const DimSplit& split, double ord,
                    const TensorView& in, const TensorView& out) {
  if (ord == 2) return Norm<SquareSumOf<T>, T>(context, split, true, in, out);
  if (ord == 1) {
    return Norm<AbsoluteSumOf<T>, T>(context, split, false, in, out);
  }
  if (ord == 0) {
    return Norm<NonzeroCountOf<T>, T>(context, split, false, in, out);
  }
  if (ord > 0) {
    return Norm<ExtremeMagnitudeOf<T, true>, T>(context, split, false, in, out);
  }
  return Norm<ExtremeMagnitudeOf<T, false>, T>(context, split, false, in, out);
}

}  // namespace

HOLDFAST_CUDA_KERNEL(vector_norm) {
  DimSplit split;
  absl::Status s = SplitOptional(attrs, *inputs[0].spec, &split);
  if (!s.ok()) return s;
  return DispatchStoredFloat(
      inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
        return NormAs<typename decltype(tag)::type>(
            context, split, attrs.Float("ord"), inputs[0], outputs[0]);
      });
}

}  // namespace holdfast::cuda
