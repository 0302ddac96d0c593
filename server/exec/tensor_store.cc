// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/tensor_store.h"

namespace holdfast {

void TensorStore::MarkFailed(uint64_t handle, const FailurePtr& failure) {
  const auto it = entries_.find(handle);
  if (it == entries_.end() || it->second.failure != nullptr) return;
  it->second.failure = failure;
  failure->targets.push_back(handle);
}

void TensorStore::Reported(OpFailure& failure) {
  failure.reported = true;
  for (uint64_t handle : failure.targets) {
    const auto it = entries_.find(handle);
    if (it == entries_.end() || it->second.failure.get() != &failure) continue;
    it->second.failure = nullptr;
  }
  failure.targets.clear();
}

}  // namespace holdfast
