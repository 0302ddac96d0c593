// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies between views of any strides and element types.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CPU_COPY_H_
#define HOLDFAST_KERNELS_CPU_COPY_H_

#include "absl/status/status.h"
#include "kernels/kernel.h"

namespace holdfast::cpu {

// dst[i] = src[i], converted to dst's type and broadcast to dst's shape (rules
// of conversion: Cast in kernels/elementwise.h). src and dst do not overlap,
// or are the same view. Cannot fail.
void CopyStrided(const KernelContext& context, const TensorView& src,
                 const TensorView& dst);

// Every element of dst = value. REQUIRES: AttrIsNumber(value).
void FillStrided(const KernelContext& context, const AttrValue& value,
                 const TensorView& dst);

// `view` itself when it is contiguous and of type `dtype`; otherwise a
// contiguous copy in scratch memory described by *spec, which the caller keeps
// alive. ResourceExhausted when scratch is short.
absl::Status MakeContiguous(KernelContext& context, const TensorView& view,
                            DType dtype, TensorSpec* spec, TensorView* out);

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_COPY_H_
