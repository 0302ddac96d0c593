// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "autograd/variable.h"

#include <utility>

#include "autograd/tape.h"

namespace holdfast {

Edge::Edge() noexcept = default;
Edge::Edge(RefPtr<Node> target, uint32_t index)
    : node(std::move(target)), output(index) {}
Edge::Edge(const Edge& other) = default;
Edge::Edge(Edge&& other) noexcept = default;
Edge& Edge::operator=(const Edge& other) = default;
Edge& Edge::operator=(Edge&& other) noexcept = default;
Edge::~Edge() = default;

Variable::Variable(TensorSpec spec) : spec_(std::move(spec)) {}
Variable::~Variable() = default;

void Variable::SetLeafRequiresGrad(bool requires_grad) {
  // Keeps the node: graphs recorded so far lead there when it is marked again.
  requires_grad_ = requires_grad;
}

void Variable::SetHistory(RefPtr<Node> node, uint32_t output) {
  edge_ = Edge(std::move(node), output);
  leaf_ = false;
  requires_grad_ = true;
}

const Edge& Variable::GradientEdge() {
  static const Edge* const kNone = new Edge;
  if (!requires_grad_) return *kNone;
  if (!edge_) edge_ = Edge(MakeRef<Node>(), 0);
  return edge_;
}

}  // namespace holdfast
