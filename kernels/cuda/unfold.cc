// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// im2col and its adjoint col2im.
#include "kernels/cuda/columns.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"

namespace holdfast::cuda {
namespace {

Windows WindowsOf(const Attrs& attrs, absl::Span<const int64_t> image) {
  Windows w;
  for (int i = 0; i < 2; ++i) w.axis[1 + i] = UnfoldAxis(attrs, image, i);
  return w;
}

}  // namespace

HOLDFAST_CUDA_KERNEL(im2col) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView input;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &input);
  if (!s.ok()) return s;
  const Dims& shape = inputs[0].spec->shape;
  const Windows w = WindowsOf(attrs, shape);
  return DispatchBits(out.dtype, [&](auto tag) -> absl::Status {
    using Bits = typename decltype(tag)::type;
    return UnfoldPlanes<Bits>(context, w, shape[0] * shape[1], input.as<Bits>(),
                              outputs[0].as<Bits>());
  });
}

HOLDFAST_CUDA_KERNEL(col2im) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView input;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &input);
  if (!s.ok()) return s;
  const Windows w = WindowsOf(attrs, out.shape);
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return FoldPlanes<T>(context, w, out.shape[0] * out.shape[1], input.as<T>(),
                         outputs[0].as<T>());
  });
}

}  // namespace holdfast::cuda
