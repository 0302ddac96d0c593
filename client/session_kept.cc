// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionCore: tensors that stay on the daemon for a later client.
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/session_core.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "proto/limits.h"

namespace holdfast::client {

absl::Status SessionCore::CheckKept(absl::Span<const KeepItem> items) const {
  size_t count = kept_.size(), bytes = 0;
  for (const auto& [name, entry] : kept_) {
    bytes += DescriptionBytes(name.size(), entry.spec.rank());
  }
  for (const auto& [name, tensor] : items) {
    if (name.size() > kMaxKeptNameBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[keep] a name must have at most ", kMaxKeptNameBytes, " bytes. Got ",
          name.size(), ": ", absl::string_view(name).substr(0, 40), "..."));
    }
    if (!tensor) continue;
    ++count;
    bytes += DescriptionBytes(name.size(), tensor->spec().rank());
  }
  const size_t most = parts_ ? kMaxKept : 1 << 16;
  if (count <= most && bytes <= kMaxKeptListBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "[keep] a session must keep at most ", most, " tensors, in a list of ",
      kMaxKeptListBytes, " bytes. Got ", items.size(), " beside ", kept_.size(),
      " that it keeps (", bytes, " bytes together)."));
}

absl::Status SessionCore::Keep(absl::Span<const KeepItem> items, bool copy) {
  if (!usable()) return Unusable();
  if (items.empty()) return absl::OkStatus();
  for (const auto& [name, tensor] : items) {
    if (!tensor) continue;
    absl::Status status = CheckOwner("keep", tensor);
    if (status.ok()) status = Settle(tensor, nullptr);
    if (!status.ok()) return status;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (absl::Status status = CheckKept(items); !status.ok()) return status;
  return parts_ ? KeepAtOnce(items, copy) : KeepOneByOne(items, copy);
}

absl::Status SessionCore::KeepAtOnce(absl::Span<const KeepItem> items,
                                     bool copy) {
  wire::Command command;
  wire::Keep* keep = command.mutable_keep();
  keep->set_copy(copy);
  // Handles of our own, so that Kept can list what the caller has dropped.
  uint64_t next = next_handle_;
  for (const auto& [name, tensor] : items) {
    wire::Keep::Item* item = keep->add_items();
    item->set_name(name);
    if (tensor) item->set_handle(tensor->handle());
    if (tensor) ++next_handle_;
  }
  if (next != next_handle_) keep->set_outputs(next);
  absl::Status status = SendCommand(command);
  if (!status.ok()) return status;
  for (const auto& [name, tensor] : items) {
    NoteKept(name, tensor, tensor ? next++ : 0, copy);
  }
  return SendReleases();
}

absl::Status SessionCore::KeepOneByOne(absl::Span<const KeepItem> items,
                                       bool copy) {
  if (copy) {
    return absl::UnimplementedError(
        absl::StrCat("[keep] copies need a newer daemon. Got ", hello_.server(),
                     ". Keep clones of the tensors."));
  }
  for (const auto& [name, tensor] : items) {
    wire::Command command;
    command.mutable_keep()->set_name(name);
    if (tensor) command.mutable_keep()->set_handle(tensor->handle());
    absl::Status status = SendCommand(command);
    if (!status.ok()) return status;
    uint64_t handle = 0;
    if (tensor) {
      handle = next_handle_++;
      command.Clear();
      command.mutable_op()->set_op(op_ids_[static_cast<int>(OpId::detach)]);
      command.mutable_op()->add_inputs(tensor->handle());
      command.mutable_op()->set_outputs(handle);
      status = SendCommand(command);
      if (!status.ok()) return status;
      CountOp();
    }
    NoteKept(name, tensor, handle, /*copy=*/false);
  }
  return SendReleases();
}

void SessionCore::NoteKept(const std::string& name, const Tensor& tensor,
                           uint64_t handle, bool copy) {
  const auto old = kept_.find(name);
  if (old != kept_.end()) {
    releases_.push_back(old->second.handle);
    kept_.erase(old);
  }
  if (!tensor) return;
  KeptEntry entry;
  entry.handle = handle;
  entry.spec = copy ? ContiguousLike(tensor->spec()) : tensor->spec();
  entry.storage = copy ? MakeRef<StorageState>() : tensor->storage();
  entry.requires_grad = tensor->is_leaf && tensor->requires_grad;
  kept_[name] = std::move(entry);
}

std::vector<std::string> SessionCore::KeptNames() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, entry] : kept_) names.push_back(name);
  return names;
}

std::vector<std::pair<std::string, Tensor>> SessionCore::Kept() {
  std::vector<std::pair<std::string, Tensor>> result;
  if (!usable()) return result;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, entry] : kept_) {
    // Another handle over the same memory, which the caller may drop.
    wire::Command command;
    wire::OpCall* call = command.mutable_op();
    const uint64_t handle = next_handle_++;
    call->set_op(op_ids_[static_cast<int>(OpId::detach)]);
    call->add_inputs(entry.handle);
    call->set_outputs(handle);
    if (!SendCommand(command).ok()) break;
    CountOp();
    Tensor tensor = NewTensor(handle, entry.spec,
                              MakeRef<StorageState>(entry.storage, false));
    if (entry.requires_grad) {
      command.Clear();
      command.mutable_set_requires_grad()->set_handle(handle);
      command.mutable_set_requires_grad()->set_requires_grad(true);
      tensor->requires_grad = true;
      tensor->node = MakeRef<GraphNode>();
      tensor->node->tensor = tensor.get();
      static_cast<void>(SendCommand(command));
    }
    result.emplace_back(name, std::move(tensor));
  }
  return result;
}

}  // namespace holdfast::client
