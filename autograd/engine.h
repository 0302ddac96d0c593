// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The engine: runs gradient rules from the roots to the targets in reverse
// order of recording.
#ifndef HOLDFAST_AUTOGRAD_ENGINE_H_
#define HOLDFAST_AUTOGRAD_ENGINE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autograd/op_sink.h"
#include "autograd/variable.h"

namespace holdfast {

struct BackwardOptions {
  bool retain_graph = false;  // keep saved tensors for another backward
  bool create_graph = false;  // record the gradient computation itself
};

// Differentiates `roots` (weighted by `gradients`, one per root, of the root's
// shape; null: ones, for a root of one element) with respect to `targets`
// (leaves or intermediate results). Returns one gradient per target, null where
// no path leads; where a path leads but only zeros flow, zeros. Each has its
// target's shape and dtype. Only nodes on a path from a root to a target run.
// The results may share storage with each other, with `gradients` and with
// what the user can reach, and may be expanded views: whoever writes to one
// must clone it first. With create_graph they carry a history.
// Errors: a root or target that needs no gradient, a root of several elements
// without gradient, a graph already freed, a saved tensor that changed; the
// graph may then be partly freed. Uses no recursion, and O(nodes + edges) time
// but for the order of the ready nodes (a heap of them).
// Thread-safety: one thread at a time per graph; `sink` must not call back into
// the engine for the same graph. Blocks as long as `sink` does.
absl::StatusOr<std::vector<Value>> RunBackward(
    OpSink& sink, absl::Span<const Value> roots,
    absl::Span<const Value> gradients, absl::Span<const Value> targets,
    const BackwardOptions& options);

}  // namespace holdfast

#endif  // HOLDFAST_AUTOGRAD_ENGINE_H_
