// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: tensors that stay when the client goes, for the next one.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/convert.h"
#include "server/exec/executor.h"
#include "server/exec/protocol_error.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

constexpr size_t kMaxKept = 1 << 16;
constexpr size_t kMaxNameBytes = 1024;

}  // namespace

absl::Status Executor::ApplyKeep(const v1::Keep& keep) {
  if (keep.name().size() > kMaxNameBytes) {
    return ProtocolError("a name has at most 1024 bytes");
  }
  if (keep.handle() == 0) {
    kept_.erase(keep.name());
    return absl::OkStatus();
  }
  FailurePtr failure;
  absl::StatusOr<Value> tensor = Resolve(keep.handle(), &failure);
  if (!tensor.ok()) return tensor.status();
  if (kept_.size() >= kMaxKept) {
    return ProtocolError("a session keeps at most 65536 tensors");
  }
  if (failure == nullptr) {
    kept_[keep.name()] = {keep.handle(), *std::move(tensor)};
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
    kept_[item.name] = {handle, std::move(tensor)};
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
