// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionCore: named tensors of the daemon, and others that have no handle yet.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/session_core.h"
#include "client/wire_spec.h"
#include "proto/version.h"

namespace holdfast::client {
namespace {

Published FromMessage(const wire::Published& message) {
  Published published;
  published.name = message.name();
  published.owner = message.owner();
  published.version = message.version();
  published.durable = message.durable();
  published.writable = message.writable();
  published.saved = message.saved();
  published.readable_by_all = message.readers().all();
  published.readers.assign(message.readers().users().begin(),
                           message.readers().users().end());
  published.tensor_count = message.tensor_count();
  published.bytes = message.bytes();
  published.time = message.time();
  return published;
}

// The gradient of `node` ends in this tensor; 0: it is no leaf's node.
uintptr_t LeafOf(const GraphNode& node) {
  return node.is_leaf() ? reinterpret_cast<uintptr_t>(node.tensor) : 0;
}

absl::Status UnexpectedAnswer(absl::string_view op) {
  return absl::InternalError(absl::StrCat(
      "[", op, "] the daemon's answer must tell of one version. Got another."));
}

}  // namespace

absl::StatusOr<wire::NameReply> SessionCore::AskNames(
    wire::NameRequest request, const std::function<bool()>& interrupted) {
  const auto& features = hello_.features();
  if (std::find(features.begin(), features.end(), kFeaturePublish) ==
      features.end()) {
    return absl::UnimplementedError(
        absl::StrCat("[publish] the daemon must know named tensors. Got ",
                     hello_.server(), ". Use the same version on both sides."));
  }
  auto read = std::make_unique<PendingRead>();
  read->names = true;
  uint64_t id = 0;
  {
    std::lock_guard<std::mutex> lock(reads_mutex_);
    id = next_read_++;
    reads_[id] = std::move(read);
  }
  request.set_id(id);
  wire::Command command;
  *command.mutable_names() = std::move(request);
  absl::Status status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    status = SendCommand(command);
  }
  if (!status.ok()) {
    std::lock_guard<std::mutex> lock(reads_mutex_);
    reads_.erase(id);
    return status;
  }
  absl::StatusOr<ReadValue> value = WaitRead(id, interrupted);
  if (!value.ok()) return value.status();
  wire::NameReply reply;
  if (!reply.ParseFromArray(value->data,
                            static_cast<int>(value->spec.nbytes()))) {
    return UnexpectedAnswer("publish");
  }
  return reply;
}

absl::StatusOr<Published> SessionCore::Publish(
    const std::string& name,
    absl::Span<const std::pair<std::string, Tensor>> tensors,
    const PublishOptions& options, const std::function<bool()>& interrupted) {
  if (!usable()) return Unusable();
  wire::NameRequest request;
  wire::Publish* publish = request.mutable_publish();
  publish->set_name(name);
  publish->set_structure(options.structure);
  publish->set_durable(options.durable);
  publish->set_writable(options.writable);
  publish->mutable_readers()->set_all(options.readable_by_all);
  for (const std::string& user : options.readers) {
    publish->mutable_readers()->add_users(user);
  }
  for (const auto& [key, tensor] : tensors) {
    absl::Status status = CheckOwner("publish", tensor);
    if (status.ok()) status = Settle(tensor, interrupted);
    if (!status.ok()) return status;
    wire::Publish::Item* item = publish->add_items();
    item->set_key(key);
    item->set_handle(tensor->handle());
  }
  absl::StatusOr<wire::NameReply> reply =
      AskNames(std::move(request), interrupted);
  if (!reply.ok()) return reply.status();
  if (reply->published_size() != 1) return UnexpectedAnswer("publish");
  if (options.writable) {
    for (const auto& [key, tensor] : tensors) {
      tensor->storage()->memory().shared = true;
    }
  }
  return FromMessage(reply->published(0));
}

absl::StatusOr<Found> SessionCore::Lookup(
    const std::string& name, uint64_t version, const std::string& owner,
    const std::function<bool()>& interrupted) {
  if (!usable()) return Unusable();
  wire::NameRequest request;
  request.mutable_lookup()->set_name(name);
  request.mutable_lookup()->set_version(version);
  request.mutable_lookup()->set_owner(owner);
  absl::StatusOr<wire::NameReply> reply =
      AskNames(std::move(request), interrupted);
  if (!reply.ok()) return reply.status();
  if (reply->published_size() != 1) return UnexpectedAnswer("lookup");
  const wire::Published& message = reply->published(0);
  Found found;
  found.published = FromMessage(message);
  found.structure = message.structure();
  const auto read_only =
      message.writable() ? nullptr : std::make_shared<std::string>(name);
  for (const wire::PublishedTensor& item : message.tensors()) {
    auto storage = MakeRef<StorageState>();
    storage->foreign = true;
    storage->shared = true;
    storage->read_only = read_only;
    found.tensors.push_back({item.key(),
                             NewTensor(item.handle(), SpecFromWire(item.spec()),
                                       std::move(storage)),
                             item.requires_grad()});
  }
  return found;
}

absl::Status SessionCore::Unpublish(const std::string& name,
                                    const std::function<bool()>& interrupted) {
  if (!usable()) return Unusable();
  wire::NameRequest request;
  request.mutable_unpublish()->set_name(name);
  return AskNames(std::move(request), interrupted).status();
}

absl::StatusOr<std::vector<Published>> SessionCore::ListPublished(
    const std::function<bool()>& interrupted) {
  std::vector<Published> all;
  while (true) {
    if (!usable()) return Unusable();
    wire::NameRequest request;
    request.mutable_list();
    if (!all.empty()) {
      request.mutable_list()->set_after_owner(all.back().owner);
      request.mutable_list()->set_after_name(all.back().name);
    }
    absl::StatusOr<wire::NameReply> reply =
        AskNames(std::move(request), interrupted);
    if (!reply.ok()) return reply.status();
    for (const wire::Published& message : reply->published()) {
      all.push_back(FromMessage(message));
    }
    if (!reply->more() || reply->published_size() == 0) return all;
  }
}

absl::StatusOr<SavedTensors> SessionCore::SavedOf(
    const Tensor& root, const GraphNode& node,
    const std::function<bool()>& interrupted) {
  if (!usable()) return Unusable();
  wire::NameRequest request;
  request.mutable_saved_of()->set_root(root->handle());
  request.mutable_saved_of()->set_op_sequence(node.op_sequence);
  absl::StatusOr<wire::NameReply> reply =
      AskNames(std::move(request), interrupted);
  if (!reply.ok()) return reply.status();
  SavedTensors saved;
  saved.attributes = reply->saved().attributes();
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<uintptr_t> leaves;  // inputs that need a gradient; 0: no leaf
  for (const RefPtr<GraphNode>& input : node.inputs) {
    if (input) leaves.push_back(LeafOf(*input));
  }
  for (const wire::SavedTensor& item : reply->saved().tensors()) {
    auto storage = MakeRef<StorageState>();
    storage->foreign = true;  // an alias that the client did not see made
    storage->shared = true;
    TensorSpec spec = SpecFromWire(item.spec());
    spec.device = root->spec().device;
    Tensor tensor =
        NewTensor(item.handle(), std::move(spec), std::move(storage));
    const uintptr_t leaf = item.edge() > 0 && item.edge() <= leaves.size()
                               ? leaves[item.edge() - 1]
                               : 0;
    saved.tensors.push_back({item.parameter(), std::move(tensor), leaf});
  }
  return saved;
}

void SessionCore::ReleaseFound(const wire::ReadResult& result) {
  wire::NameReply reply;
  if (!reply.ParseFromString(result.data())) return;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const wire::Published& version : reply.published()) {
    for (const wire::PublishedTensor& tensor : version.tensors()) {
      releases_.push_back(tensor.handle());
    }
  }
  for (const wire::SavedTensor& tensor : reply.saved().tensors()) {
    releases_.push_back(tensor.handle());
  }
  static_cast<void>(SendReleases());
}

absl::Status SessionCore::CheckSaved(const OpSchema& op,
                                     absl::Span<const Tensor> inputs) {
  const absl::StatusOr<SavedMasks> saved = Saved(op, inputs);
  if (!saved.ok()) return absl::OkStatus();  // an older daemon does not tell
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] || !saved->input(i) ||
        !inputs[i]->storage()->memory().inference) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "[", op.name,
        "] Inference tensors cannot be saved for backward. To work around you "
        "can make a clone to get a normal tensor and use it in autograd. Got ",
        inputs[i]->spec().ToString(), "."));
  }
  return absl::OkStatus();
}

absl::Status SessionCore::CheckWritable(const OpSchema& op,
                                        absl::Span<const Tensor> inputs) const {
  const size_t per_list = op.num_lists > 0 ? inputs.size() / op.num_lists : 1;
  for (size_t i = 0; per_list > 0 && i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const StorageState& memory = inputs[i]->storage()->memory();
    const bool inference = memory.inference && !InferenceMode();
    if (memory.read_only == nullptr && !inference) continue;
    const size_t slot = i / per_list;
    if (slot >= op.tensor_params.size() ||
        !op.params[op.tensor_params[slot]].mutated) {
      // The in-place form writes what the row does not mark.
      if (op.has(kMutates) || i != 0) continue;
    }
    if (inference) {
      return absl::FailedPreconditionError(absl::StrCat(
          "[", op.name, op.has(kMutates) ? "" : "_",
          "] Inplace update to inference tensor outside InferenceMode is not "
          "allowed. You can make a clone to get a normal tensor before doing "
          "inplace update. Got ",
          inputs[i]->spec().ToString(), "."));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "[", op.name, op.has(kMutates) ? "" : "_", "] '", *memory.read_only,
        "' is published, and its tensors are read-only: write to a clone() of "
        "them, or publish with writable=True. Got ",
        inputs[i]->spec().ToString()));
  }
  return absl::OkStatus();
}

}  // namespace holdfast::client
