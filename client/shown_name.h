// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What Tensor.grad_fn shows of a node: the name that PyTorch's node has, since
// programs print it.
// Thread-safety: as graph.h.
#ifndef HOLDFAST_CLIENT_SHOWN_NAME_H_
#define HOLDFAST_CLIENT_SHOWN_NAME_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "client/graph.h"
#include "client/tensor.h"
#include "ops/attrs.h"

namespace holdfast::client {

// GraphNode::overload of a call: which of PyTorch's functions an op that stands
// for several was. Inputs may be null (None, or a number in the attributes).
uint8_t ShownOverload(const Attrs& attrs, absl::Span<const Tensor> inputs);

// What grad_fn is of a tensor whose memory may have been written through an
// alias; null: none. The node need not be part of the graph.
RefPtr<GraphNode> ShownNode(const TensorState& tensor);

// The nodes that next_functions shows, in PyTorch's order; null: no gradient.
GraphEdges ShownInputs(const GraphNode& node);

// Whether two nodes are one to the user, and a hash that agrees: those of
// ShownNode() and ShownInputs() that are no part of the graph are made anew
// each time, and are one where they show one function of the same nodes.
bool SameShown(const GraphNode& a, const GraphNode& b);
size_t ShownHash(const GraphNode& node);

// "MmBackward0", "AccumulateGrad", ...
std::string ShownName(const GraphNode& node);

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_SHOWN_NAME_H_
