// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/tensor.h"

#include <utility>

#include "client/session.h"

namespace holdfast::client {

StorageState::StorageState(RefPtr<StorageState> detached_from)
    : base(detached_from->base ? detached_from->base
                               : std::move(detached_from)) {}

StorageState::~StorageState() = default;

TensorState::TensorState(std::shared_ptr<Session> session, uint64_t handle,
                         TensorSpec spec, RefPtr<StorageState> storage)
    : session_(std::move(session)),
      handle_(handle),
      spec_(std::move(spec)),
      storage_(std::move(storage)) {}

TensorState::~TensorState() { session_->Release(*this); }

}  // namespace holdfast::client
