// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// prod. Complex numbers go to the CPU's kernel.
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/host_ops.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/reducers.h"

namespace holdfast::cuda {
namespace {

template <typename T>
absl::Status Product(KernelContext& context, const DimSplit& split,
                     const TensorView& input, const TensorView& output) {
  using R = ProductOf<T>;
  const Operand out(output);
  return ReduceTensor<R, T>(
      context, split, input.as<T>(),
      [=] HOLDFAST_LAMBDA(int64_t row, typename R::Acc acc) {
        out.Store(row, acc);
      });
}

}  // namespace

// Elements are first converted to the type that the product has.
HOLDFAST_CUDA_KERNEL(prod) {
  if (IsComplex(outputs[0].spec->dtype)) {
    return RunOnHost(context, attrs, inputs, outputs);
  }
  TensorSpec spec;
  TensorView input = inputs[0];
  absl::Status s;
  if (input.spec->dtype != outputs[0].spec->dtype) {
    s = MakeContiguous(context, inputs[0], outputs[0].spec->dtype, &spec,
                       &input);
    if (!s.ok()) return s;
  }
  Dims dims;
  if (!attrs.None("dim")) dims.push_back(attrs.Int("dim"));
  DimSplit split;
  if (s = SplitDims(*input.spec, dims, &split); !s.ok()) return s;
  return DispatchStored(input.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if constexpr (kIsComplex<T>) {
      return UnsupportedDType<absl::Status>();
    } else {
      return Product<T>(context, split, input, outputs[0]);
    }
  });
}

}  // namespace holdfast::cuda
