// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies between views of any strides and element types, on the device.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_COPY_H_
#define HOLDFAST_KERNELS_CUDA_COPY_H_

#include <cstddef>

#include "absl/status/status.h"
#include "kernels/kernel.h"

namespace holdfast::cuda {

// to[i] = from[i], converted and broadcast to to's shape. The two do not
// overlap, or are the same view.
absl::Status CudaCopy(KernelContext& context, const TensorView& from,
                      const TensorView& to);

// Every element of `to` = value. REQUIRES: AttrIsNumber(value).
absl::Status CudaFill(KernelContext& context, const AttrValue& value,
                      const TensorView& to);

// `view` itself when it is contiguous and of type `dtype`; otherwise a
// contiguous copy in scratch memory described by *spec, which the caller keeps.
absl::Status MakeContiguous(KernelContext& context, const TensorView& view,
                            DType dtype, TensorSpec* spec, TensorView* out);

// Operands of a call as kernels like them: contiguous and of one type.
// `specs` describes those that were copied, so that it must not move.
template <size_t kCount>
struct ContiguousOperands {
  TensorSpec specs[kCount];
  TensorView views[kCount];

  // The inputs of a call; absent ones stay so. REQUIRES: at most kCount.
  absl::Status Make(KernelContext& context, absl::Span<const TensorView> inputs,
                    DType dtype) {
    absl::Status s;
    for (size_t i = 0; i < inputs.size() && s.ok(); ++i) {
      if (inputs[i].present()) s = MakeOne(context, i, inputs[i], dtype);
    }
    return s;
  }
  absl::Status MakeOne(KernelContext& context, size_t i, const TensorView& view,
                       DType dtype) {
    return MakeContiguous(context, view, dtype, &specs[i], &views[i]);
  }
  template <typename T>
  T* as(size_t i) const {
    return views[i].template as<T>();
  }
};

// A view of `view`'s memory from an element of it on, as `spec` says.
inline TensorView AtOffset(const TensorView& view, int64_t elements,
                           const TensorSpec& spec) {
  return {
      view.as<char>() + elements * static_cast<int64_t>(ItemSize(spec.dtype)),
      &spec};
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_COPY_H_
