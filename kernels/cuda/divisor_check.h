// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Integer division by zero, which ops refuse.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_DIVISOR_CHECK_H_
#define HOLDFAST_KERNELS_CUDA_DIVISOR_CHECK_H_

#include "kernels/cuda/check.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/offsets.h"
#include "ops/infer.h"

namespace holdfast::cuda {

// Waits, if the operands are integers.
inline absl::Status RefuseZeroDivisor(KernelContext& context,
                                      const Attrs& attrs,
                                      absl::Span<const TensorView> in,
                                      const TensorView& out) {
  if (!IsIntegral(in[0].spec->dtype) || !IsIntegral(in[1].spec->dtype) ||
      out.spec->numel() == 0) {
    return absl::OkStatus();
  }
  const TensorSpec* const specs[1] = {in[1].spec};
  const Offsets<1> offsets = BroadcastOffsets<1>(specs);
  const Operand divisor(in[1]);
  absl::StatusOr<int64_t> zero =
      FirstFault(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
        int64_t at;
        offsets.At(i, &at);
        return !divisor.Load<bool>(at);
      });
  if (!zero.ok()) return zero.status();
  if (*zero < 0) return absl::OkStatus();
  const TensorSpec* both[] = {in[0].spec, in[1].spec};
  return OpError(attrs, both, "integer division by zero: ZeroDivisionError");
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_DIVISOR_CHECK_H_
