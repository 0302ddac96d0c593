// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "autograd/engine.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "autograd/grad_rule.h"
#include "autograd/tape.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// Numbers the passes, so that what an earlier one left in a node is stale
// without anybody clearing it.
std::atomic<uint64_t> last_pass{0};

// The gradient of one output of a node while it collects its parts.
struct Slot {
  Value value;
  // Made by this engine's own addition and seen by nobody else: further parts
  // may be added in place.
  bool owned = false;
};

// What one pass knows about a node.
struct Task {
  explicit Task(Node* n) : node(n) {}
  Node* node;
  bool wanted = false;  // leads to a target or is one's node
  bool leads = false;   // leads to a target: has to run
  bool walked = false;
  bool queued = false;
  int32_t first_place = -1;  // its targets: a list through TargetPlace::next
  absl::InlinedVector<Slot, 1> slots;  // per output
};

struct TargetPlace {
  uint32_t task;
  uint32_t output;
  int32_t next;  // another target of the same task, or -1
};

class Pass {
 public:
  Pass(OpSink& sink, const BackwardOptions& options)
      : sink_(sink),
        options_(options),
        number_(last_pass.fetch_add(1, std::memory_order_relaxed) + 1) {}

  absl::StatusOr<std::vector<Value>> Run(absl::Span<const Value> roots,
                                         absl::Span<const Value> gradients,
                                         absl::Span<const Value> targets);

 private:
  absl::Status AddTargets(absl::Span<const Value> targets);
  absl::Status AddRoots(absl::Span<const Value> roots,
                        absl::Span<const Value> gradients);
  // Finds the nodes below the roots and which of them lead to a target.
  void Explore();
  absl::Status RunNode(uint32_t index);
  // Adds `grad` to what `edge` has received; queues its node.
  absl::Status Deliver(const Edge& edge, Value grad);
  absl::StatusOr<Value> Emit(const Attrs& attrs, absl::Span<const Value> inputs,
                             bool inplace);
  absl::StatusOr<Value> Filled(const TensorSpec& like, int64_t value);
  // Takes what the targets at this task have received.
  void Capture(const Task& task);

  bool seen(const Node& node) const { return node.visit_pass == number_; }
  // The node's task, made on first sight.
  uint32_t TaskOf(Node* node);

  OpSink& sink_;
  const BackwardOptions options_;
  const uint64_t number_;
  std::vector<Task> tasks_;
  std::vector<TargetPlace> places_;  // per target
  std::vector<Value> results_;       // per target
  std::vector<Edge> roots_;          // keeps the graph alive
  // Heap of runnable tasks, latest recorded first. A node's users were all
  // recorded after it, so when it comes up its gradient is complete: the order
  // makes counting dependencies unnecessary.
  std::vector<std::pair<uint64_t, uint32_t>> ready_;
};

uint32_t Pass::TaskOf(Node* node) {
  if (!seen(*node)) {
    node->visit_pass = number_;
    node->visit_index = static_cast<uint32_t>(tasks_.size());
    tasks_.emplace_back(node);
  }
  return node->visit_index;
}

absl::StatusOr<Value> Pass::Emit(const Attrs& attrs,
                                 absl::Span<const Value> inputs, bool inplace) {
  absl::StatusOr<Values> outputs =
      sink_.Emit(attrs, inputs, options_.create_graph, inplace);
  if (!outputs.ok()) return outputs.status();
  return std::move((*outputs)[0]);
}

absl::StatusOr<Value> Pass::Filled(const TensorSpec& like, int64_t value) {
  Attrs attrs(&GetOp(OpId::full));
  attrs.Set("size", like.shape);
  attrs.Set("fill_value", value);
  attrs.Set("dtype", like.dtype);
  return Emit(attrs, {}, /*inplace=*/false);
}

absl::Status Pass::AddTargets(absl::Span<const Value> targets) {
  places_.reserve(targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!targets[i] || !targets[i]->requires_grad()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "[backward] every tensor to differentiate for must require a "
          "gradient. Got inputs[",
          i, "]=", targets[i] ? targets[i]->spec().ToString() : "None", "."));
    }
    const Edge& edge = targets[i]->GradientEdge();
    const uint32_t index = TaskOf(edge.node.get());
    Task& task = tasks_[index];
    task.wanted = true;
    places_.push_back({index, edge.output, task.first_place});
    task.first_place = static_cast<int32_t>(i);
  }
  results_.resize(targets.size());
  return absl::OkStatus();
}

absl::Status Pass::AddRoots(absl::Span<const Value> roots,
                            absl::Span<const Value> gradients) {
  if (gradients.size() != roots.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[backward] there must be one gradient per root. Got roots=",
        roots.size(), ", gradients=", gradients.size(), "."));
  }
  for (size_t i = 0; i < roots.size(); ++i) {
    if (!roots[i] || !roots[i]->requires_grad()) {
      return absl::FailedPreconditionError(
          absl::StrCat("[backward] element ", i,
                       " of tensors does not require grad and does not have a "
                       "grad_fn. Got root=",
                       roots[i] ? roots[i]->spec().ToString() : "None", "."));
    }
    const TensorSpec& spec = roots[i]->spec();
    if (!gradients[i] && spec.numel() != 1) {
      return absl::FailedPreconditionError(
          absl::StrCat("[backward] grad can be implicitly created only for "
                       "scalar outputs. Got root=",
                       spec.ToString(), ", gradient=None."));
    }
    if (gradients[i] && gradients[i]->spec().shape != spec.shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[backward] a gradient must have its root's shape. Got root=",
          spec.ToString(), ", gradient=", gradients[i]->spec().ToString(),
          "."));
    }
    if (gradients[i] && !IsDifferentiable(gradients[i]->spec().dtype)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[backward] a gradient must be floating point. Got root=",
          spec.ToString(), ", gradient=", gradients[i]->spec().ToString(),
          "."));
    }
    roots_.push_back(roots[i]->GradientEdge());
  }
  return absl::OkStatus();
}

void Pass::Explore() {
  // Nodes recorded before every target cannot lead to one.
  uint64_t oldest = std::numeric_limits<uint64_t>::max();
  for (const TargetPlace& place : places_) {
    oldest = std::min(oldest, tasks_[place.task].node->sequence());
  }
  // Depth first, on a stack of our own: {task, next edge}. A node's verdict is
  // complete when the walk leaves it.
  std::vector<std::pair<uint32_t, uint32_t>> stack;
  const auto enter = [&](Node* node) {
    const uint32_t index = TaskOf(node);
    if (tasks_[index].walked) return false;
    tasks_[index].walked = true;
    stack.emplace_back(index, 0);
    return true;
  };
  for (const Edge& root : roots_) {
    if (!enter(root.node.get())) continue;
    while (!stack.empty()) {
      const uint32_t index = stack.back().first;
      Node* node = tasks_[index].node;
      bool deeper = false;
      // Entering a node moves the stack: no reference to it is kept.
      while (!deeper && stack.back().second < node->edges.size()) {
        Node* input = node->edges[stack.back().second++].node.get();
        if (input != nullptr && input->sequence() >= oldest) {
          deeper = enter(input);
        }
      }
      if (deeper) continue;
      Task& task = tasks_[index];
      for (const Edge& edge : node->edges) {
        if (edge && seen(*edge.node) && tasks_[edge.node->visit_index].wanted) {
          task.leads = true;
        }
      }
      task.wanted |= task.leads;
      stack.pop_back();
    }
  }
}

absl::Status Pass::Deliver(const Edge& edge, Value grad) {
  const uint32_t index = edge.node->visit_index;
  Task& task = tasks_[index];
  if (task.slots.size() <= edge.output) task.slots.resize(edge.output + 1);
  Slot& slot = task.slots[edge.output];
  if (!slot.value) {
    slot.value = std::move(grad);
  } else {
    const bool inplace = slot.owned && !options_.create_graph;
    const Value parts[] = {slot.value, std::move(grad)};
    absl::StatusOr<Value> sum = Emit(Attrs(&GetOp(OpId::add)), parts, inplace);
    if (!sum.ok()) return sum.status();
    slot = {*std::move(sum), true};
  }
  if (task.leads && !task.queued) {
    task.queued = true;
    ready_.emplace_back(task.node->sequence(), index);
    std::push_heap(ready_.begin(), ready_.end());
  }
  return absl::OkStatus();
}

void Pass::Capture(const Task& task) {
  for (int32_t i = task.first_place; i >= 0; i = places_[i].next) {
    const uint32_t output = places_[i].output;
    if (output < task.slots.size()) results_[i] = task.slots[output].value;
  }
}

absl::Status Pass::RunNode(uint32_t index) {
  Capture(tasks_[index]);
  Node* node = tasks_[index].node;
  Values grads(node->attrs().schema().num_outputs);
  {
    auto& slots = tasks_[index].slots;
    for (size_t i = 0; i < slots.size(); ++i) {
      grads[i] = std::move(slots[i].value);
    }
    slots.clear();
  }
  uint64_t wanted = 0;
  const size_t n = node->edges.size();
  for (size_t i = 0; i < n && i < 64; ++i) {
    const Edge& edge = node->edges[i];
    if (edge && seen(*edge.node) && tasks_[edge.node->visit_index].wanted) {
      wanted |= uint64_t{1} << i;
    }
  }
  GradContext context(&sink_, node, grads, options_.create_graph, wanted);
  node->rule().apply(context);
  if (!context.status().ok()) return context.status();
  if (!options_.retain_graph) node->Release();
  // The gradient's memory may go now, before its parts travel on.
  grads.clear();
  absl::Span<Value> results = context.results();
  for (size_t i = 0; i < n; ++i) {
    const Edge& edge = node->edges[i];
    if (!results[i] || !edge || !seen(*edge.node) ||
        !tasks_[edge.node->visit_index].wanted) {
      continue;
    }
    const absl::Status status = Deliver(edge, std::move(results[i]));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Value>> Pass::Run(absl::Span<const Value> roots,
                                             absl::Span<const Value> gradients,
                                             absl::Span<const Value> targets) {
  absl::Status status = AddTargets(targets);
  if (!status.ok()) return status;
  status = AddRoots(roots, gradients);
  if (!status.ok()) return status;
  Explore();
  for (size_t i = 0; i < roots.size(); ++i) {
    if (!tasks_[roots_[i].node->visit_index].wanted) continue;
    Value grad = gradients[i];
    if (!grad) {
      absl::StatusOr<Value> ones = Filled(roots[i]->spec(), 1);
      if (!ones.ok()) return ones.status();
      grad = *std::move(ones);
    } else if (grad->spec().dtype != roots[i]->spec().dtype) {
      Attrs attrs(&GetOp(OpId::to));
      attrs.Set("dtype", roots[i]->spec().dtype);
      absl::StatusOr<Value> cast =
          Emit(attrs, absl::MakeConstSpan(&grad, 1), /*inplace=*/false);
      if (!cast.ok()) return cast.status();
      grad = *std::move(cast);
    }
    status = Deliver(roots_[i], std::move(grad));
    if (!status.ok()) return status;
  }
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end());
    const uint32_t index = ready_.back().second;
    ready_.pop_back();
    status = RunNode(index);
    if (!status.ok()) return status;
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    // A target whose node had no reason to run still holds its gradient.
    const Task& task = tasks_[places_[i].task];
    const uint32_t output = places_[i].output;
    if (!results_[i] && output < task.slots.size()) {
      results_[i] = task.slots[output].value;
    }
    if (results_[i] || !task.walked) continue;
    absl::StatusOr<Value> zeros = Filled(targets[i]->spec(), 0);
    if (!zeros.ok()) return zeros.status();
    results_[i] = *std::move(zeros);
  }
  return std::move(results_);
}

}  // namespace

absl::StatusOr<std::vector<Value>> RunBackward(
    OpSink& sink, absl::Span<const Value> roots,
    absl::Span<const Value> gradients, absl::Span<const Value> targets,
    const BackwardOptions& options) {
  return Pass(sink, options).Run(roots, gradients, targets);
}

}  // namespace holdfast
