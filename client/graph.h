// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The client's shadow of the autograd graph: which leaves does a tensor depend
// on? The tape itself is on the server; this is just enough to name the
// gradients in a Backward message and to answer `.grad is None` without
// waiting. One small node per differentiable op.
// Thread-safety: guarded by the session's lock.
#ifndef HOLDFAST_CLIENT_GRAPH_H_
#define HOLDFAST_CLIENT_GRAPH_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ops/op_schema.h"
#include "ops/ref_counted.h"

namespace holdfast::client {

class TensorState;

struct GraphNode final : public RefCounted {
  absl::InlinedVector<RefPtr<GraphNode>, 2> inputs;
  // Set on a leaf's node (and a retains_grad tensor's): the tensor, which
  // clears it when it dies (then its gradient is nobody's).
  TensorState* tensor = nullptr;
  OpId op = OpId::kCount;  // kCount: a leaf
  uint64_t visited = 0;    // epoch of the last traversal

 protected:
  // Frees chains of any length without recursion.
  void Destroy() override;
};

// Tensors (leaves and retains_grad ones) that `roots` depend on, each once, in
// a deterministic order. Iterative.
std::vector<TensorState*> ReachedTensors(
    absl::Span<const RefPtr<GraphNode>> roots);

// Drops the edges behind `roots` (after backward without retain_graph), so
// that memory follows PyTorch's: nodes die as backward passes.
void ReleaseGraph(absl::Span<const RefPtr<GraphNode>> roots);

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_GRAPH_H_
