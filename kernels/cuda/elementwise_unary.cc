// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#if defined(__CUDACC__)
// The rows compare with 0 for types without negative numbers, too.
#pragma nv_diag_suppress 186
#endif

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.h"

namespace holdfast::cuda {
namespace {

template <typename T>
absl::Status ComplexAbs(KernelContext& context, const TensorView& in,
                        const TensorView& out) {
  const TensorSpec* const specs[2] = {out.spec, in.spec};
  const Offsets<2> offsets = BroadcastOffsets<2>(specs);
  const Complex<T>* from = in.as<Complex<T>>();
  T* to = out.as<T>();
  return ForEach(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[2];
    offsets.At(i, at);
    to[at[0]] = Magnitude(from[at[1]]);
  });
}

template <typename Op>
absl::Status Run(KernelContext& context, const TensorView& in,
                 const TensorView& out) {
  if (std::is_same_v<Op, elementwise::op::abs>) {
    if (in.spec->dtype == DType::kComplex64) {
      return ComplexAbs<float>(context, in, out);
    }
    if (in.spec->dtype == DType::kComplex128) {
      return ComplexAbs<double>(context, in, out);
    }
  }
  return RunUnary<Op>(context, in, out);
}

}  // namespace

#define HOLDFAST_UNARY_KERNEL(name, types, expression)                 \
  HOLDFAST_CUDA_KERNEL(name) {                                         \
    return Run<elementwise::op::name>(context, inputs[0], outputs[0]); \
  }
HOLDFAST_UNARY_OPS(HOLDFAST_UNARY_KERNEL)
HOLDFAST_UNARY_PREDICATES(HOLDFAST_UNARY_KERNEL)
#undef HOLDFAST_UNARY_KERNEL

}  // namespace holdfast::cuda
