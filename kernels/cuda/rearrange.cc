// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// flip, tril, triu: copies that move or drop elements, whatever their type.
#include <algorithm>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/offsets.h"

namespace holdfast::cuda {
namespace {

// Row i keeps columns up to i + diagonal (lower), or from there on.
template <typename Bits>
absl::Status TriangleOf(KernelContext& context, const TensorView& input,
                        const TensorView& output, int64_t diagonal,
                        bool lower) {
  const TensorSpec& spec = *input.spec;
  const int64_t rows = spec.shape[spec.rank() - 2];
  const int64_t columns = spec.shape[spec.rank() - 1];
  const TensorSpec* const specs[2] = {output.spec, input.spec};
  const Offsets<2> offsets = BroadcastOffsets<2>(specs);
  const Bits* const in = input.as<Bits>();
  Bits* const out = output.as<Bits>();
  return ForEach(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[2];
    offsets.At(i, at);
    const int64_t column = i % columns, row = i / columns % rows;
    const int64_t past = column - row - diagonal;
    const bool keep = lower ? past <= 0 : past >= 0;
    out[at[0]] = keep ? in[at[1]] : Bits{};
  });
}

absl::Status Triangle(KernelContext& context, const Attrs& attrs,
                      const TensorView& input, const TensorView& output,
                      bool lower) {
  const TensorSpec& in = *input.spec;
  if (in.numel() == 0) return absl::OkStatus();
  // Any int64 may come; beyond these nothing changes.
  const int64_t diagonal = std::clamp(
      attrs.Int("diagonal"), -in.shape[in.rank() - 2], in.shape[in.rank() - 1]);
  return DispatchBits(in.dtype, [&](auto tag) -> absl::Status {
    return TriangleOf<typename decltype(tag)::type>(context, input, output,
                                                    diagonal, lower);
  });
}

}  // namespace

// A copy from a view that runs backwards.
HOLDFAST_CUDA_KERNEL(flip) {
  TensorSpec from = *inputs[0].spec;
  if (from.numel() == 0 || from.rank() == 0) {
    return CudaCopy(context, inputs[0], outputs[0]);
  }
  int64_t origin = 0;
  for (int64_t dim : attrs.Ints("dims")) {
    absl::StatusOr<int> d = NormalizeDim(dim, from.rank());
    if (!d.ok()) return d.status();
    origin += (from.shape[*d] - 1) * inputs[0].spec->strides[*d];
    from.strides[*d] = -inputs[0].spec->strides[*d];
  }
  return CudaCopy(context, AtOffset(inputs[0], origin, from), outputs[0]);
}

HOLDFAST_CUDA_KERNEL(tril) {
  return Triangle(context, attrs, inputs[0], outputs[0], /*lower=*/true);
}
HOLDFAST_CUDA_KERNEL(triu) {
  return Triangle(context, attrs, inputs[0], outputs[0], /*lower=*/false);
}

}  // namespace holdfast::cuda
