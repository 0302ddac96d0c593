// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: tensors that stay when the client goes, for the next one.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "proto/convert.h"
#include "proto/limits.h"
#include "server/exec/executor.h"
#include "server/exec/protocol_error.h"
#include "spdlog/spdlog.h"

namespace holdfast {
absl::Status Executor::CheckKept(const v1::Keep& keep) const {
  size_t count = kept_.size(), bytes = kept_bytes_;
  const auto add = [&](const std::string& name, uint64_t handle) {
    const TensorStore::Entry* entry = store_.Find(handle);
    ++count;
    bytes += DescriptionBytes(name.size(), entry != nullptr && entry->tensor
                                               ? entry->tensor->spec().rank()
                                               : 0);
    return name.size() <= kMaxKeptNameBytes;
  };
  bool ok = true;
  if (keep.handle() != 0) ok = add(keep.name(), keep.handle());
  for (const v1::Keep::Item& item : keep.items()) {
    if (item.handle() != 0) ok &= add(item.name(), item.handle());
  }
  if (ok && count <= kMaxKept && bytes <= kMaxKeptListBytes) {
    return absl::OkStatus();
  }
  return ProtocolError(absl::StrCat(
      "a session keeps at most ", kMaxKept, " tensors, whose names have ",
      kMaxKeptNameBytes, " bytes and whose list has ", kMaxKeptListBytes));
}

absl::Status Executor::ApplyKeep(const v1::Keep& keep) {
  if (absl::Status s = CheckKept(keep); !s.ok()) return s;
  if (keep.items_size() > 0) return KeepItems(keep);
  if (keep.handle() == 0) {
    Forget(keep.name());
    return absl::OkStatus();
  }
  FailurePtr failure;
  absl::StatusOr<Value> tensor = Resolve(keep.handle(), &failure);
  if (!tensor.ok()) return tensor.status();
  if (failure == nullptr) {
    KeepUnder(keep.name(), {keep.handle(), *std::move(tensor)});
  }
  return absl::OkStatus();
}

void Executor::Forget(const std::string& name) {
  const auto kept = kept_.find(name);
  if (kept == kept_.end()) return;
  kept_bytes_ -=
      DescriptionBytes(name.size(), kept->second.tensor->spec().rank());
  kept_.erase(kept);
}

void Executor::KeepUnder(const std::string& name, KeptTensor kept) {
  Forget(name);
  kept_bytes_ += DescriptionBytes(name.size(), kept.tensor->spec().rank());
  kept_[name] = std::move(kept);
}

absl::StatusOr<Value> Executor::MadeBy(OpId op, const Value& tensor) {
  Values made;
  absl::Status status =
      runner_.Run(Attrs(&GetOp(op)), {&tensor, 1}, /*record=*/false,
                  /*inplace=*/false, &made);
  if (!status.ok()) return status;
  return std::move(made[0]);
}

absl::StatusOr<Value> Executor::ToKeep(const Value& tensor, bool copy) {
  if (!copy) return tensor;
  absl::StatusOr<Value> made = MadeBy(OpId::clone, tensor);
  if (made.ok() && tensor->is_leaf() && tensor->requires_grad()) {
    (*made)->SetLeafRequiresGrad(true);
  }
  return made;
}

absl::Status Executor::KeepItems(const v1::Keep& keep) {
  uint64_t next = keep.outputs();
  const int count = static_cast<int>(
      std::count_if(keep.items().begin(), keep.items().end(),
                    [](const auto& item) { return item.handle() != 0; }));
  if (next != 0 && count > 0) {
    if (absl::Status s = Promise(next, count); !s.ok()) return s;
  }
  FailurePtr failure;
  std::vector<Value> values;
  for (const v1::Keep::Item& item : keep.items()) {
    if (item.handle() == 0) continue;
    absl::StatusOr<Value> tensor = Resolve(item.handle(), &failure);
    if (!tensor.ok()) return tensor.status();
    if (failure == nullptr) {
      absl::StatusOr<Value> value = ToKeep(*tensor, keep.copy());
      if (!value.ok()) failure = NewFailure(value.status(), "keep");
      if (value.ok()) values.push_back(*std::move(value));
    }
  }
  std::vector<Value> outputs;
  for (size_t i = 0; i < values.size() && next != 0 && failure == nullptr;
       ++i) {
    absl::StatusOr<Value> output = MadeBy(OpId::detach, values[i]);
    if (!output.ok()) failure = NewFailure(output.status(), "keep");
    if (output.ok()) outputs.push_back(*std::move(output));
  }
  if (failure != nullptr) {  // what was kept before stays
    for (int i = 0; i < count && next != 0; ++i) {
      store_.PutFailure(next + i, failure);
    }
    return absl::OkStatus();
  }
  size_t at = 0;
  for (const v1::Keep::Item& item : keep.items()) {
    if (item.handle() == 0) {
      Forget(item.name());
      continue;
    }
    if (next != 0) store_.Put(next++, std::move(outputs[at]));
    KeepUnder(item.name(), {item.handle(), std::move(values[at++])});
  }
  return absl::OkStatus();
}

void Executor::Reattach(bool local) {
  DropHandles();
  SetNumerics({});
  // From now on, since the former client may have the memory mapped for ever.
  if (local && device_->host_memory()) runner_.set_guard(&guard_);
  local_ = local;
  for (auto& [name, kept] : kept_) {
    kept.handle = ++highest_handle_;
    store_.Put(kept.handle, kept.tensor);
  }
}

KeptTensors Executor::TakeKept() {
  KeptTensors all;
  for (const auto& [name, kept] : kept_) {
    // They come back on the home device.
    absl::StatusOr<Value> home = runner_.AtHome(kept.tensor);
    if (!home.ok()) {
      spdlog::error("session '{}': tensor '{}' is lost: {}", options_.user,
                    name, std::string(home.status().message()));
      continue;
    }
    all.items.push_back({name, (*home)->spec(), kept.tensor->requires_grad(),
                         AsTensor(*home)->storage()});
  }
  all.random = runner_.random();
  all.next_handle = next_handle();
  return all;
}

void Executor::RestoreKept(KeptTensors all) {
  highest_handle_ = std::max<uint64_t>(all.next_handle, 1) - 1;
  runner_.SetRandom(all.random);
  for (KeptTensors::Item& item : all.items) {
    auto tensor =
        MakeRef<Tensor>(std::move(item.spec), std::move(item.storage));
    if (item.requires_grad) tensor->SetLeafRequiresGrad(true);
    const uint64_t handle = ++highest_handle_;
    store_.Put(handle, tensor);
    KeepUnder(item.name, {handle, std::move(tensor)});
  }
}

void Executor::ListKept(v1::HelloReply* reply) const {
  for (const auto& [name, kept] : kept_) {
    v1::KeptTensor* tensor = reply->add_kept();
    tensor->set_name(name);
    tensor->set_handle(kept.handle);
    SpecToProto(kept.tensor->spec(), tensor->mutable_spec());
    tensor->set_requires_grad(kept.tensor->requires_grad());
  }
}

}  // namespace holdfast
