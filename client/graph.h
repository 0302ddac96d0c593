// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The client's shadow of the autograd graph: which leaves does a tensor depend
// on? The tape itself is on the server; this is just enough to name the
// gradients in a Backward message and to answer `.grad is None` without
// waiting. One small node per differentiable op. Where the client cannot know
// (aliases written in place, gradients of gradients) it errs towards "depends".
// Thread-safety: guarded by the session's lock.
#ifndef HOLDFAST_CLIENT_GRAPH_H_
#define HOLDFAST_CLIENT_GRAPH_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "client/user_code.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "ops/ref_counted.h"

namespace holdfast::client {

class TensorState;
struct GraphNode;

using GraphEdges = absl::InlinedVector<RefPtr<GraphNode>, 2>;

// What grad_fn shows instead of the last op of a function that is made of ops.
struct ShownFunction {
  const char* name;  // static storage
  GraphEdges next;   // the nodes of the function's own inputs; null: none
};

struct GraphNode final : public RefCounted {
  // Null for an input that needs no gradient.
  absl::InlinedVector<RefPtr<GraphNode>, 2> inputs;
  // Set on a leaf's node (and a retains_grad tensor's): the tensor, which
  // clears it when it dies (then its gradient is nobody's).
  TensorState* tensor = nullptr;
  uint64_t op_sequence = 0;  // of the op; 0: not sent as one, as a gradient's
  OpId op = OpId::kCount;    // kCount: a leaf, or the user's function
  uint8_t overload = 0;      // for shown_name.h
  std::unique_ptr<ShownFunction> shown;
  std::shared_ptr<UserCode> function;
  std::shared_ptr<UserCode> unpack;  // of an op: has what backward needs
  // Hooks on the gradient that arrives here, and their numbers.
  std::vector<std::pair<uint64_t, std::shared_ptr<UserCode>>> hooks;
  bool is_leaf() const { return op == OpId::kCount && !function && !released; }
  // Its gradient needs nothing of the forward pass: backward leaves it as it
  // is.
  bool saves_nothing = false;
  bool released = false;  // backward has passed without retain_graph
  bool on_path = false;   // scratch of the last traversal
  uint64_t visited = 0;   // epoch of the last traversal

 protected:
  // Frees chains of any length without recursion.
  void Destroy() override;
};

// What a backward pass will meet.
struct Reach {
  // Tensors (leaves and retains_grad ones) that the roots depend on, each once,
  // in a deterministic order. With targets: those among the targets.
  std::vector<TensorState*> tensors;
  // Op nodes on a path from a root to one of the tensors.
  std::vector<GraphNode*> path;
  // Some of the user's code takes part.
  bool user_code = false;
  // One of them was released by an earlier backward.
  bool released = false;
};

// `targets` empty: every tensor reached counts. Otherwise target->on_path says
// whether it was reached. Iterative, O(nodes + edges).
Reach FindReach(absl::Span<const RefPtr<GraphNode>> roots,
                absl::Span<GraphNode* const> targets);

// Drops the edges behind the nodes of `path` (after backward without
// retain_graph), so that memory follows PyTorch's: nodes die as backward
// passes.
void ReleaseGraph(const Reach& reach);

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_GRAPH_H_
