// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which ops can be parts of CUDA graphs. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_RECORDABLE_OPS_H_
#define HOLDFAST_KERNELS_CUDA_RECORDABLE_OPS_H_

#include "ops/op_schema.h"

namespace holdfast::cuda {

// Not what goes to and fro between host and device under way, as the libraries
// that factor matrices do (dense_solver.h).
bool CanRecordCudaOp(const OpSchema& op);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_RECORDABLE_OPS_H_
