// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionCore: tensors that several sessions of a daemon have.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/session_core.h"
#include "proto/version.h"

namespace holdfast::client {

absl::Status SessionCore::CheckShares() const {
  const auto& features = hello_.features();
  if (std::find(features.begin(), features.end(), kFeatureShare) !=
      features.end()) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat("[share] the daemon must know how to share tensors between "
                   "sessions. Got ",
                   hello_.server(), ". Use the same version on both sides."));
}

absl::StatusOr<std::string> SessionCore::Share(
    const Tensor& tensor, bool hold, const std::function<bool()>& interrupted) {
  if (!usable()) return Unusable();
  absl::Status status = CheckOwner("share", tensor);
  if (status.ok()) status = CheckShares();
  if (!status.ok()) return status;
  auto read = std::make_unique<PendingRead>();
  read->share = true;
  read->held_share = hold;
  absl::StatusOr<uint64_t> id =
      SendRead(std::move(read), tensor->handle(), /*place=*/false);
  if (!id.ok()) return id.status();
  absl::StatusOr<ReadValue> value = WaitRead(*id, interrupted);
  if (!value.ok()) return value.status();
  tensor->storage()->memory().shared = true;
  return std::string(static_cast<const char*>(value->data),
                     value->spec.nbytes());
}

absl::StatusOr<Tensor> SessionCore::OpenShared(const std::string& token,
                                               TensorSpec spec,
                                               bool release_hold) {
  if (!usable()) return Unusable();
  absl::Status status = CheckShares();
  if (!status.ok()) return status;
  wire::Command command;
  wire::Open* open = command.mutable_open();
  open->set_token(token);
  open->set_release_hold(release_hold);
  wire::TensorSpec* message = open->mutable_spec();
  message->set_dtype(static_cast<wire::DType>(spec.dtype));
  for (int64_t size : spec.shape) message->add_shape(size);
  for (int64_t stride : spec.strides) message->add_strides(stride);
  message->set_offset(spec.offset);
  message->set_device(spec.device);
  auto storage = MakeRef<StorageState>();
  storage->foreign = true;
  storage->shared = true;
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t handle = next_handle_++;
  open->set_handle(handle);
  status = SendCommand(command);
  if (!status.ok()) return status;
  CountOp();
  return NewTensor(handle, std::move(spec), std::move(storage));
}

}  // namespace holdfast::client
