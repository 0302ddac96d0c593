// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/recordable_ops.h"

#include <algorithm>
#include <iterator>

#include "ops/op_id.h"

namespace holdfast::cuda {
namespace {

constexpr OpId kAskTheHost[] = {
    OpId::linalg_cholesky,   OpId::linalg_lu_factor,
    OpId::linalg_solve,      OpId::linalg_solve_triangular,
    OpId::linalg_qr,         OpId::linalg_eigh,
    OpId::linalg_eigvalsh,   OpId::linalg_svd,
    OpId::linalg_svdvals,    OpId::linalg_pinv,
    OpId::linalg_matrix_exp, OpId::linalg_eig};

}  // namespace

bool CanRecordCudaOp(const OpSchema& op) {
  return std::find(std::begin(kAskTheHost), std::end(kAskTheHost), op.id) ==
         std::end(kAskTheHost);
}

}  // namespace holdfast::cuda
