// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"

namespace holdfast::cuda {
namespace {

// start + i * step, not a running sum: exact for integers, and rounded once
// for floats.
template <typename T>
absl::Status Arange(KernelContext& context, const AttrValue& start,
                    const AttrValue& step, const TensorView& output) {
  using Number =
      std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
  Number first, by;
  if constexpr (std::is_floating_point_v<T>) {
    first = AttrAsDouble(start);
    by = AttrAsDouble(step);
  } else {
    first = AttrAsInt(start);
    by = AttrAsInt(step);
  }
  T* const out = output.as<T>();
  return ForEach(context, output.spec->numel(), [=] HOLDFAST_LAMBDA(int64_t i) {
    const Number at = static_cast<Number>(i);
    out[i] = elementwise::Cast<T>(
        elementwise::Add(first, elementwise::Multiply(at, by)));
  });
}

template <typename T>
absl::Status Eye(KernelContext& context, const TensorView& output) {
  const int64_t columns = output.spec->shape[1];
  T* const out = output.as<T>();
  return ForEach(context, output.spec->numel(), [=] HOLDFAST_LAMBDA(int64_t i) {
    out[i] = i / columns == i % columns ? T(1) : T(0);
  });
}

}  // namespace

// What the memory holds is what the caller gets.
HOLDFAST_CUDA_KERNEL(empty) { return absl::OkStatus(); }

HOLDFAST_CUDA_KERNEL(full) {
  return CudaFill(context, attrs.Get(1), outputs[0]);
}

HOLDFAST_CUDA_KERNEL(arange) {
  return DispatchDType(outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    return Arange<typename decltype(tag)::type>(context, attrs.Get(0),
                                                attrs.Get(2), outputs[0]);
  });
}

HOLDFAST_CUDA_KERNEL(eye) {
  return DispatchWithComplex(
      outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
        return Eye<typename decltype(tag)::type>(context, outputs[0]);
      });
}

}  // namespace holdfast::cuda
