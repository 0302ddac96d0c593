// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "autograd/engine.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "autograd/grad_rule.h"
#include "autograd/tape.h"
#include "ops/check.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// Numbers the passes, so that what an earlier one left in a node is stale
// without anybody clearing it.
std::atomic<uint64_t> last_pass{0};

}  // namespace

absl::Status BackwardPass::WithForwardOp(absl::Status status,
                                         const Node& node) {
  if (node.op_sequence != 0 && !status.GetPayload(kForwardOpPayload)) {
    status.SetPayload(kForwardOpPayload,
                      absl::Cord(absl::StrCat(node.op_sequence)));
  }
  return status;
}

BackwardPass::BackwardPass(OpSink& sink, std::vector<Value> roots,
                           std::vector<Value> gradients,
                           std::vector<Value> targets,
                           const BackwardOptions& options)
    : sink_(sink),
      options_(options),
      number_(last_pass.fetch_add(1, std::memory_order_relaxed) + 1),
      root_values_(std::move(roots)),
      gradients_(std::move(gradients)),
      targets_(std::move(targets)) {}

BackwardPass::~BackwardPass() {
  for (const Task& task : tasks_) {
    task.node->visit_pass = task.outer_pass;
    task.node->visit_index = task.outer_index;
  }
}

uint32_t BackwardPass::TaskOf(Node* node) {
  if (!seen(*node)) {
    tasks_.emplace_back(node);  // remembers what the node says now
    node->visit_pass = number_;
    node->visit_index = static_cast<uint32_t>(tasks_.size()) - 1;
  }
  return node->visit_index;
}

absl::StatusOr<Value> BackwardPass::Emit(const Attrs& attrs,
                                         absl::Span<const Value> inputs,
                                         bool inplace) {
  absl::StatusOr<Values> outputs =
      sink_.Emit(attrs, inputs, options_.create_graph, inplace);
  if (!outputs.ok()) return outputs.status();
  return std::move((*outputs)[0]);
}

absl::StatusOr<Value> BackwardPass::Filled(const TensorSpec& like,
                                           int64_t value) {
  Attrs attrs(&GetOp(OpId::full));
  attrs.Set("size", like.shape);
  attrs.Set("fill_value", value);
  attrs.Set("dtype", like.dtype);
  attrs.set_device(like.device);
  return Emit(attrs, {}, /*inplace=*/false);
}

absl::Status BackwardPass::AddTargets() {
  places_.reserve(targets_.size());
  for (size_t i = 0; i < targets_.size(); ++i) {
    if (!targets_[i] || !targets_[i]->requires_grad()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "[backward] every tensor to differentiate for must require a "
          "gradient. Got inputs[",
          i, "]=", targets_[i] ? targets_[i]->spec().ToString() : "None", "."));
    }
    const Edge& edge = targets_[i]->GradientEdge();
    const uint32_t index = TaskOf(edge.node.get());
    Task& task = tasks_[index];
    task.wanted = true;
    places_.push_back({index, edge.output, task.first_place});
    task.first_place = static_cast<int32_t>(i);
  }
  results_.resize(targets_.size());
  return absl::OkStatus();
}

absl::Status BackwardPass::AddRoots() {
  if (gradients_.size() != root_values_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[backward] there must be one gradient per root. Got roots=",
        root_values_.size(), ", gradients=", gradients_.size(), "."));
  }
  for (size_t i = 0; i < root_values_.size(); ++i) {
    if (!root_values_[i] || !root_values_[i]->requires_grad()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "[backward] element ", i,
          " of tensors does not require grad and does not have a "
          "grad_fn. Got root=",
          root_values_[i] ? root_values_[i]->spec().ToString() : "None", "."));
    }
    const TensorSpec& spec = root_values_[i]->spec();
    if (!gradients_[i] && spec.numel() != 1) {
      return absl::FailedPreconditionError(
          absl::StrCat("[backward] grad can be implicitly created only for "
                       "scalar outputs. Got root=",
                       spec.ToString(), ", gradient=None."));
    }
    if (gradients_[i] && gradients_[i]->spec().shape != spec.shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[backward] a gradient must have its root's shape. Got root=",
          spec.ToString(), ", gradient=", gradients_[i]->spec().ToString(),
          "."));
    }
    if (gradients_[i] && !IsDifferentiable(gradients_[i]->spec().dtype)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[backward] a gradient must be floating point. Got root=",
          spec.ToString(), ", gradient=", gradients_[i]->spec().ToString(),
          "."));
    }
    roots_.push_back(root_values_[i]->GradientEdge());
  }
  return absl::OkStatus();
}

void BackwardPass::Explore() {
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

BackwardPass::Slot& BackwardPass::SlotOf(const Edge& edge) {
  Task& task = tasks_[edge.node->visit_index];
  if (task.slots.size() <= edge.output) task.slots.resize(edge.output + 1);
  return task.slots[edge.output];
}

void BackwardPass::Queue(const Edge& edge) {
  const uint32_t index = edge.node->visit_index;
  Task& task = tasks_[index];
  const bool hooked = options_.user_code && task.node->user != nullptr &&
                      task.hooks_run < task.node->user->hooks.size();
  if ((task.leads || (task.wanted && hooked)) && !task.queued) {
    task.queued = true;
    ready_.emplace_back(task.node->sequence(), index);
    std::push_heap(ready_.begin(), ready_.end());
  }
}

absl::Status BackwardPass::Deliver(const Edge& edge, Value grad) {
  Slot& slot = SlotOf(edge);
  if (!slot.value) {
    slot.value = std::move(grad);
  } else {
    const bool inplace = slot.owned && !options_.create_graph;
    const Value parts[] = {slot.value, std::move(grad)};
    absl::StatusOr<Value> sum = Emit(Attrs(&GetOp(OpId::add)), parts, inplace);
    if (!sum.ok()) return sum.status();
    slot = {*std::move(sum), true};
  }
  Queue(edge);
  return absl::OkStatus();
}

absl::Status BackwardPass::DeliverPart(const Edge& edge, const Attrs& view,
                                       const PartGradient& part) {
  Slot& slot = SlotOf(edge);
  if (!slot.owned) {
    absl::StatusOr<Value> whole =
        slot.value ? Emit(Attrs(&GetOp(OpId::clone)), {&slot.value, 1}, false)
                   : Emit(part.place, {&part.grad, 1}, /*inplace=*/false);
    if (!whole.ok()) return whole.status();
    const bool begun = static_cast<bool>(slot.value);
    slot = {*std::move(whole), true};
    if (!begun) {
      Queue(edge);
      return absl::OkStatus();
    }
  }
  absl::StatusOr<Value> place = Emit(view, {&slot.value, 1}, false);
  if (!place.ok()) return place.status();
  const Value parts[] = {*std::move(place), part.grad};
  Queue(edge);
  return Emit(Attrs(&GetOp(OpId::add)), parts, /*inplace=*/true).status();
}

void BackwardPass::Capture(const Task& task) {
  for (int32_t i = task.first_place; i >= 0; i = places_[i].next) {
    const uint32_t output = places_[i].output;
    if (output < task.slots.size()) results_[i] = task.slots[output].value;
  }
}

bool BackwardPass::wanted(const Edge& edge) const {
  return edge && seen(*edge.node) && tasks_[edge.node->visit_index].wanted;
}

Values BackwardPass::TakeGradients(Task& task) {
  Values grads(task.node->num_outputs());
  for (size_t i = 0; i < task.slots.size(); ++i) {
    grads[i] = std::move(task.slots[i].value);
  }
  task.slots.clear();
  return grads;
}

absl::Status BackwardPass::RunNode(uint32_t index) {
  CallNextHook(index);
  if (calling_) return absl::OkStatus();
  Capture(tasks_[index]);
  Node* node = tasks_[index].node;
  // Only its hooks were wanted.
  if (!tasks_[index].leads) return absl::OkStatus();
  const bool function = node->is_user_function();
  if (!function && !node->packed()) return RunRule(index);
  if (!options_.user_code) {
    return absl::FailedPreconditionError(
        absl::StrCat("[backward] the graph holds ",
                     function ? "a function" : "packed tensors",
                     " of the user's, which only its client can run. Got ",
                     node->name(), "."));
  }
  if (function) {
    Values grads = TakeGradients(tasks_[index]);
    call_ = {node->user->function, UserCall::Kind::kFunction, std::move(grads)};
    called_node_ = RefPtr<Node>(node);
  } else {
    call_ = {node->user->unpack, UserCall::Kind::kUnpack, {}};
  }
  calling_task_ = index;
  calling_ = true;
  return absl::OkStatus();
}

absl::Status BackwardPass::RunRule(uint32_t index) {
  Node* node = tasks_[index].node;
  Values grads = TakeGradients(tasks_[index]);
  running_op_ = node->op_sequence;
  uint64_t mask = 0;
  for (size_t i = 0; i < node->edges.size() && i < 64; ++i) {
    if (wanted(node->edges[i])) mask |= uint64_t{1} << i;
  }
  GradContext context(&sink_, node, absl::MakeSpan(grads),
                      options_.create_graph, mask);
  try {
    node->rule().apply(context);
  } catch (...) {
    return WithForwardOp(
        CaughtStatus(absl::StrCat("backward of ", node->name())), *node);
  }
  if (node->packed()) node->ForgetUnpacked();
  if (!context.status().ok()) return WithForwardOp(context.status(), *node);
  if (!options_.retain_graph) node->Release();
  // The gradient's memory may go now, before its parts travel on.
  grads.clear();
  if (const auto part = context.TakePart()) {
    if (!options_.detect_anomaly) {
      return DeliverPart(node->edges[part->input], node->attrs(), *part);
    }
    absl::StatusOr<Value> whole = Emit(part->place, {&part->grad, 1}, false);
    if (!whole.ok()) return whole.status();
    context.results()[part->input] = *std::move(whole);
  }
  return Pass(node, context.results());
}

absl::Status BackwardPass::Pass(Node* node, absl::Span<Value> results) {
  if (options_.detect_anomaly) {
    absl::Status status = CheckNoNaN(*node, results);
    if (!status.ok()) return WithForwardOp(status, *node);
  }
  for (size_t i = 0; i < node->edges.size(); ++i) {
    if (!wanted(node->edges[i])) continue;
    if (!results[i]) {
      if (node->is_user_function()) {
        none_answered_ = true;
      } else {
        tasks_[node->edges[i].node->visit_index].zero = true;
      }
      continue;
    }
    absl::Status status = Deliver(node->edges[i], std::move(results[i]));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status BackwardPass::CheckNoNaN(const Node& node,
                                      absl::Span<const Value> results) {
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) continue;
    absl::StatusOr<bool> nan = sink_.HasNaN(results[i]);
    if (!nan.ok()) return nan.status();
    if (*nan) {
      return absl::FailedPreconditionError(
          absl::StrCat("[", node.name(), "] the backward of ", node.name(),
                       " returned nan values in its ", i, "th output."));
    }
  }
  return absl::OkStatus();
}

absl::Status BackwardPass::Start() {
  absl::Status status = AddTargets();
  if (!status.ok()) return status;
  status = AddRoots();
  if (!status.ok()) return status;
  Explore();
  for (size_t i = 0; i < root_values_.size(); ++i) {
    if (!tasks_[roots_[i].node->visit_index].wanted) continue;
    const TensorSpec& spec = root_values_[i]->spec();
    Value grad = gradients_[i];
    if (!grad) {
      absl::StatusOr<Value> ones = Filled(spec, 1);
      if (!ones.ok()) return ones.status();
      grad = *std::move(ones);
    } else if (grad->spec().dtype != spec.dtype) {
      Attrs attrs(&GetOp(OpId::to));
      attrs.Set("dtype", spec.dtype);
      absl::StatusOr<Value> cast = Emit(attrs, {&grad, 1}, /*inplace=*/false);
      if (!cast.ok()) return cast.status();
      grad = *std::move(cast);
    }
    status = Deliver(roots_[i], std::move(grad));
    if (!status.ok()) return status;
  }
  root_values_.clear();
  gradients_.clear();
  return absl::OkStatus();
}

absl::StatusOr<BackwardPass::State> BackwardPass::Run(
    absl::FunctionRef<bool()> yield) {
  if (!started_) {
    started_ = true;
    absl::Status status = Start();
    if (!status.ok()) return status;
  }
  if (calling_) return State::kCalling;
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end());
    const uint32_t index = ready_.back().second;
    ready_.pop_back();
    absl::Status status = RunNode(index);
    if (!status.ok()) return status;
    if (calling_) return State::kCalling;
    if (yield()) return State::kRunning;
  }
  running_op_ = 0;
  absl::Status status = Finish();
  if (!status.ok()) return status;
  return State::kDone;
}

void BackwardPass::SpreadZeros() {
  // Users before what they use; leaves, which use nothing, last.
  std::vector<const Task*> order;
  for (const Task& task : tasks_) {
    if (!task.node->is_leaf()) order.push_back(&task);
  }
  std::sort(order.begin(), order.end(), [](const Task* a, const Task* b) {
    return a->node->sequence() > b->node->sequence();
  });
  for (const Task* task : order) {
    if (!task->zero) continue;
    for (const Edge& edge : task->node->edges) {
      if (wanted(edge)) tasks_[edge.node->visit_index].zero = true;
    }
  }
}

absl::Status BackwardPass::Finish() {
  unused_.resize(targets_.size());
  if (none_answered_) SpreadZeros();
  for (size_t i = 0; i < targets_.size(); ++i) {
    // A target whose node had no reason to run still holds its gradient.
    const Task& task = tasks_[places_[i].task];
    const uint32_t output = places_[i].output;
    if (!results_[i] && output < task.slots.size()) {
      results_[i] = task.slots[output].value;
    }
    if (results_[i] || !task.walked) continue;
    if (none_answered_ && !task.zero) {
      unused_[i] = true;
      continue;
    }
    absl::StatusOr<Value> zeros = Filled(targets_[i]->spec(), 0);
    if (!zeros.ok()) return zeros.status();
    results_[i] = *std::move(zeros);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Value>> RunBackward(
    OpSink& sink, absl::Span<const Value> roots,
    absl::Span<const Value> gradients, absl::Span<const Value> targets,
    const BackwardOptions& options) {
  BackwardPass pass(sink, {roots.begin(), roots.end()},
                    {gradients.begin(), gradients.end()},
                    {targets.begin(), targets.end()}, options);
  absl::StatusOr<BackwardPass::State> state = pass.Run([] { return false; });
  if (!state.ok()) return state.status();
  if (*state == BackwardPass::State::kCalling) {
    return absl::FailedPreconditionError(
        "[backward] nobody is there to run the user's code");
  }
  return pass.TakeResults();
}

}  // namespace holdfast
