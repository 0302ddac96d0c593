// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: tensors that several sessions have. They share a storage and
// nothing else: each session has its own handles, gradients and count of
// writes, so that what others write is no error in a graph that saved the
// tensor before. One thread runs all sessions' ops, so that writes never mix.
// The memory stays on the account of the session that allocated it.
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/place_op.h"
#include "proto/convert.h"
#include "server/exec/executor.h"

namespace holdfast {

void Executor::ShareStorage(const v1::Read& read, const Value& tensor,
                            v1::ReadResult* result) {
  Storage* storage = AsTensor(tensor)->storage().get();
  // One that is another session's was shared by it.
  const int place = DevicePlace(tensor->spec().device);
  const std::string& token = shared_->Share(
      storage, place == 0 ? owned_memory_ : devices_.memory(place),
      options_.user);
  if (read.hold()) shared_->Hold(token, this);
  result->set_data(token);
}

absl::Status Executor::ApplyOpen(const v1::Open& open) {
  ++op_sequence_;
  if (absl::Status s = Promise(open.handle(), 1); !s.ok()) return s;
  absl::StatusOr<RefPtr<Tensor>> tensor = OpenShared(open);
  if (tensor.ok()) {
    store_.Put(open.handle(), *std::move(tensor));
  } else {
    store_.PutFailure(open.handle(), NewFailure(tensor.status(), "open"));
  }
  return absl::OkStatus();
}

absl::StatusOr<RefPtr<Tensor>> Executor::OpenShared(const v1::Open& open) {
  RefPtr<Storage> storage = shared_->Find(open.token(), options_.user);
  if (!storage) {
    return absl::NotFoundError(
        "[open] no shared tensor has that token: its last owner dropped it "
        "before it was opened, or it belongs to another daemon. Keep the "
        "tensor where it was made until the other program has it");
  }
  absl::StatusOr<TensorSpec> spec = SpecFromProto(open.spec());
  if (!spec.ok()) return spec.status();
  if (absl::Status s = CheckFits(*spec, storage->bytes()); !s.ok()) {
    return absl::Status(s.code(), absl::StrCat("[open] ", s.message()));
  }
  if (DevicePlace(spec->device) != storage->allocator()->place()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[open] the shared tensor is on the daemon's device ",
        storage->allocator()->place(), ". Got ", spec->ToString()));
  }
  if (open.release_hold()) shared_->Release(open.token());
  // The session that made it may have a client that writes it at any time.
  if (IsForeign(*storage)) runner_.set_guard(&guard_);
  return MakeRef<Tensor>(*std::move(spec), std::move(storage),
                         MakeRef<VersionCounter>());
}

}  // namespace holdfast
