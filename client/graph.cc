// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/graph.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "ops/op_id.h"

namespace holdfast::client {
namespace {

// Sessions have their own locks, so the epochs are shared with care.
uint64_t NextEpoch() {
  static std::atomic<uint64_t> epoch{0};
  return epoch.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

void GraphNode::Destroy() {
  absl::InlinedVector<RefPtr<GraphNode>, 8> doomed;
  for (RefPtr<GraphNode>& input : inputs) doomed.push_back(std::move(input));
  delete this;
  while (!doomed.empty()) {
    RefPtr<GraphNode> node = std::move(doomed.back());
    doomed.pop_back();
    if (node && node->unique()) {
      for (RefPtr<GraphNode>& input : node->inputs) {
        doomed.push_back(std::move(input));
      }
      node->inputs.clear();
    }
  }
}

Reach FindReach(absl::Span<const RefPtr<GraphNode>> roots,
                absl::Span<GraphNode* const> targets) {
  // Depth first; `order` lists inputs before their users.
  const uint64_t epoch = NextEpoch();
  for (GraphNode* target : targets) {
    if (target != nullptr) target->on_path = false;
  }
  std::vector<GraphNode*> order;
  std::vector<std::pair<GraphNode*, size_t>> stack;
  const auto enter = [&](GraphNode* node) {
    if (node == nullptr || node->visited == epoch) return;
    node->visited = epoch;
    node->on_path = false;
    stack.emplace_back(node, 0);
  };
  for (const RefPtr<GraphNode>& root : roots) {
    enter(root.get());
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < node->inputs.size()) {
        GraphNode* input = node->inputs[next++].get();
        enter(input);  // invalidates the reference above
      } else {
        order.push_back(node);
        stack.pop_back();
      }
    }
  }

  Reach reach;
  for (GraphNode* target : targets) {
    if (target != nullptr && target->visited == epoch) target->on_path = true;
  }
  for (GraphNode* node : order) {
    const bool wanted =
        targets.empty() ? node->tensor != nullptr : node->on_path;
    if (wanted && node->tensor != nullptr) {
      reach.tensors.push_back(node->tensor);
    }
    node->on_path =
        wanted ||
        std::any_of(node->inputs.begin(), node->inputs.end(),
                    [](const auto& input) { return input && input->on_path; });
    reach.user_code |=
        node->on_path && (node->function != nullptr ||
                          node->unpack != nullptr || !node->hooks.empty());
    if (node->released) {
      reach.released = true;
    } else if (node->on_path && !node->is_leaf()) {
      reach.path.push_back(node);
    }
  }
  return reach;
}

void ReleaseGraph(const Reach& reach) {
  // Clearing one node's edges may free others of the path, so hold them all.
  std::vector<RefPtr<GraphNode>> alive;
  alive.reserve(reach.path.size());
  for (GraphNode* node : reach.path) alive.emplace_back(node);
  for (GraphNode* node : reach.path) {
    if (node->shown) node->shown->next.clear();
    if (node->saves_nothing && node->hooks.empty()) continue;
    node->released = true;
    node->inputs.clear();
    // They may hold tensors that hold this node.
    node->function.reset();
    node->unpack.reset();
    node->hooks.clear();
  }
}

}  // namespace holdfast::client
