// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// argmax, argmin: the first index of the extreme; the first NaN is extreme.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/reducers.h"

namespace holdfast::cuda {
namespace {

template <typename T, bool kMax>
absl::Status ArgAs(KernelContext& context, const DimSplit& split, const T* data,
                   int64_t* out) {
  using R = PlaceOf<T, kMax>;
  using Acc = typename R::Acc;
  const Offsets<1> kept = split.kept, reduced = split.reduced;
  return ReduceRows<R>(
      context, kept.numel, reduced.numel, split.columns,
      [=] HOLDFAST_LAMBDA(int64_t row, int64_t j) {
        int64_t base, at;
        kept.At(row, &base);
        reduced.At(j, &at);
        return Acc{static_cast<typename R::Value>(
                       Computed(LoadStored<T>(data, base + at))),
                   j};
      },
      [=] HOLDFAST_LAMBDA(int64_t row, Acc acc) { out[row] = acc.index; });
}

template <bool kMax>
absl::Status Arg(KernelContext& context, const Attrs& attrs,
                 const TensorView& input, int64_t* out) {
  if (input.spec->numel() == 0) return absl::OkStatus();
  Dims dims;
  if (!attrs.None("dim")) dims.push_back(attrs.Int("dim"));
  DimSplit split;
  absl::Status s = SplitDims(*input.spec, dims, &split);
  if (!s.ok()) return s;
  return DispatchStored(input.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if constexpr (kIsComplex<T>) {
      return UnsupportedDType<absl::Status>();
    } else {
      return ArgAs<T, kMax>(context, split, input.as<T>(), out);
    }
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(argmax) {
  return Arg<true>(context, attrs, inputs[0], outputs[0].as<int64_t>());
}
HOLDFAST_CUDA_KERNEL(argmin) {
  return Arg<false>(context, attrs, inputs[0], outputs[0].as<int64_t>());
}

}  // namespace holdfast::cuda
