// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/tensor.h"

#include <algorithm>
#include <utility>

#include "client/known_integer.h"
#include "client/session.h"

namespace holdfast::client {
namespace {

thread_local bool t_inference = false;

}  // namespace

bool InferenceMode() { return t_inference; }

bool SetInferenceMode(bool on) { return std::exchange(t_inference, on); }

StorageState::StorageState(const RefPtr<StorageState>& detached_from,
                           bool own_versions)
    : base(detached_from->base ? detached_from->base : detached_from) {
  if (own_versions) return;
  counted_by =
      detached_from->counted_by ? detached_from->counted_by : detached_from;
}

StorageState::~StorageState() = default;

TensorState::TensorState(std::shared_ptr<Session> session, uint64_t handle,
                         TensorSpec spec, RefPtr<StorageState> storage)
    : session_(std::move(session)),
      handle_(handle),
      spec_(std::move(spec)),
      pending_(std::find(spec_.shape.begin(), spec_.shape.end(),
                         kUnknownSize) != spec_.shape.end()),
      storage_(std::move(storage)) {}

void TensorState::Settle(absl::Span<const int64_t> shape) {
  // Element by element: others may be looking at the rank.
  const Dims strides = ContiguousStrides(shape);
  std::copy(shape.begin(), shape.end(), spec_.shape.begin());
  std::copy(strides.begin(), strides.end(), spec_.strides.begin());
  // What has such sizes is made in memory of its own.
  storage_->bytes = spec_.nbytes();
  pending_.store(false, std::memory_order_release);
}

void AddGraphEdges(const TensorState& tensor, GraphEdges* edges) {
  if (tensor.node) edges->push_back(tensor.node);
  const RefPtr<GraphNode>& written = tensor.storage()->written_by;
  if (written && written != tensor.node) edges->push_back(written);
}

TensorState::~TensorState() { session_->Release(*this); }

}  // namespace holdfast::client
