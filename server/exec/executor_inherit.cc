// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: tensors that a forked process takes over from its parent's session,
// as copies, so that neither sees what the other writes afterwards.
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "server/exec/executor.h"

namespace holdfast {

absl::StatusOr<Value> Executor::Lend(uint64_t handle, uint64_t op_sequence) {
  if (op_sequence_ < op_sequence || busy()) {
    return absl::UnavailableError(
        absl::StrCat("[fork] the parent's op ", op_sequence,
                     " must be done first. Got ", op_sequence_, " done."));
  }
  if (!store_.Contains(handle)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[fork] the parent process must keep a tensor that its child uses. Got "
        "handle ",
        handle, ", which it has released since."));
  }
  FailurePtr failure;
  absl::StatusOr<Value> tensor = Resolve(handle, &failure);
  if (failure != nullptr) return failure->status;
  if (!tensor.ok()) return tensor;
  // The borrower reads it on a stream of its own.
  if (absl::Status s = runner_.Synchronize(*tensor); !s.ok()) return s;
  return tensor;
}

absl::StatusOr<Value> Executor::CopyInherited(const v1::Inherited& from,
                                              const TensorSpec& spec) {
  absl::StatusOr<Value> original = sink_->FindInherited(from);
  if (!original.ok()) return original.status();
  const TensorSpec& got = (*original)->spec();
  if (got.dtype != spec.dtype || got.device != spec.device ||
      got.shape != spec.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("[fork] the tensor must be what the child takes it for. "
                     "Got ",
                     got.ToString(), " instead of ", spec.ToString(), "."));
  }
  const Attrs clone(&GetOp(OpId::clone));
  Values copy;
  absl::Status status = runner_.Run(clone, {&*original, 1}, /*record=*/false,
                                    /*inplace=*/false, &copy);
  // The owner may free it, and write there, as soon as it is given back.
  if (status.ok()) status = runner_.Synchronize(copy[0]);
  if (!status.ok()) return status;
  return std::move(copy[0]);
}

}  // namespace holdfast
