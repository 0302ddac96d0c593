// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops that write tensors as parts of a larger one: cat, constant_pad,
// slice_backward, select_backward, as_strided_scatter. All are copies.
#include <algorithm>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/cuda_kernels.h"

namespace holdfast::cuda {
namespace {

absl::Status FillZero(KernelContext& context, const TensorView& out) {
  const size_t bytes = out.spec->nbytes();
  if (bytes == 0) return absl::OkStatus();
  return Cuda(context).FillBytes(out.data, 0, bytes);
}

}  // namespace

HOLDFAST_CUDA_KERNEL(cat) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  absl::StatusOr<int> dim = NormalizeDim(attrs.Int("dim"), out.rank());
  if (!dim.ok()) return dim.status();
  int64_t position = 0;
  for (const TensorView& input : inputs) {
    if (input.spec->numel() == 0) continue;
    TensorSpec part = out;
    part.shape[*dim] = input.spec->shape[*dim];
    absl::Status s =
        CudaCopy(context, input,
                 AtOffset(outputs[0], position * out.strides[*dim], part));
    if (!s.ok()) return s;
    position += part.shape[*dim];
  }
  return absl::OkStatus();
}

HOLDFAST_CUDA_KERNEL(constant_pad) {
  const TensorSpec& in = *inputs[0].spec;
  const TensorSpec& out = *outputs[0].spec;
  const Dims& pad = attrs.Ints("pad");
  TensorSpec from = in, to = out;
  int64_t from_offset = 0, to_offset = 0;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int d = in.rank() - 1 - static_cast<int>(i);
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    const int64_t size = in.shape[d] + std::min<int64_t>(before, 0) +
                         std::min<int64_t>(after, 0);
    from.shape[d] = to.shape[d] = size;
    from_offset += std::max<int64_t>(-before, 0) * in.strides[d];
    to_offset += std::max<int64_t>(before, 0) * out.strides[d];
  }
  if (to.numel() != out.numel()) {
    absl::Status s = CudaFill(context, attrs.Get("value"), outputs[0]);
    if (!s.ok()) return s;
  }
  if (from.numel() == 0) return absl::OkStatus();
  return CudaCopy(context, AtOffset(inputs[0], from_offset, from),
                  AtOffset(outputs[0], to_offset, to));
}

HOLDFAST_CUDA_KERNEL(slice_backward) {
  const TensorSpec& grad = *inputs[0].spec;
  const TensorSpec& out = *outputs[0].spec;
  absl::Status s = FillZero(context, outputs[0]);
  if (!s.ok() || grad.numel() == 0) return s;
  absl::StatusOr<int> dim = NormalizeDim(attrs.Int("dim"), out.rank());
  if (!dim.ok()) return dim.status();
  TensorSpec part = out;
  part.shape = grad.shape;
  part.strides[*dim] *= attrs.Int("step");
  return CudaCopy(
      context, inputs[0],
      AtOffset(outputs[0], attrs.Int("start") * out.strides[*dim], part));
}

HOLDFAST_CUDA_KERNEL(select_backward) {
  const TensorSpec& out = *outputs[0].spec;
  absl::Status s = FillZero(context, outputs[0]);
  if (!s.ok() || inputs[0].spec->numel() == 0) return s;
  absl::StatusOr<int> dim = NormalizeDim(attrs.Int("dim"), out.rank());
  if (!dim.ok()) return dim.status();
  TensorSpec part = out;
  part.shape.erase(part.shape.begin() + *dim);
  part.strides.erase(part.strides.begin() + *dim);
  return CudaCopy(
      context, inputs[0],
      AtOffset(outputs[0], attrs.Int("index") * out.strides[*dim], part));
}

HOLDFAST_CUDA_KERNEL(as_strided_scatter) {
  absl::Status s = CudaCopy(context, inputs[0], outputs[0]);
  if (!s.ok() || inputs[1].spec->numel() == 0) return s;
  TensorSpec part = *outputs[0].spec;
  part.shape = attrs.Ints("size");
  part.strides = attrs.Ints("stride");
  const int64_t offset =
      attrs.None("storage_offset") ? 0 : attrs.Int("storage_offset");
  return CudaCopy(context, inputs[1], AtOffset(outputs[0], offset, part));
}

}  // namespace holdfast::cuda
