// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionCore: gradients. The engine is on the server; here is what must be
// known at the call: which gradients will exist, and PyTorch's errors.
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "client/session_core.h"
#include "client/shown_name.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::client {
namespace {

constexpr char kSecondTime[] =
    "[backward] Trying to backward through the graph a second time (or "
    "directly access saved tensors after they have already been freed). Saved "
    "intermediate values of the graph are freed when you call .backward() or "
    "autograd.grad(). Specify retain_graph=True if you need to backward "
    "through the graph a second time.";

absl::Status Unused(const TensorSpec& input) {
  return absl::InvalidArgumentError(absl::StrCat(
      "[grad] One of the differentiated Tensors appears to not have been used "
      "in the graph. Set allow_unused=True if this is the desired behavior. "
      "Got ",
      input.ToString(), "."));
}

}  // namespace

// ---- recording

void SessionCore::SetMade(TensorState* tensor, RefPtr<GraphNode> node) {
  tensor->node = std::move(node);
  tensor->requires_grad = true;
  tensor->is_leaf = false;
}

void SessionCore::MoveHistory(TensorState* tensor, RefPtr<GraphNode> node) {
  // A tensor that keeps its gradient takes that wish along.
  if (tensor->retains_grad) {
    if (tensor->node) tensor->node->tensor = nullptr;
    node->tensor = tensor;
  }
  SetMade(tensor, std::move(node));
}

void SessionCore::SetWritten(TensorState* tensor, RefPtr<GraphNode> node) {
  MoveHistory(tensor, std::move(node));
  // Views and bases of it see the write too.
  const RefPtr<StorageState>& storage = tensor->storage();
  storage->written_by = storage->unique() ? nullptr : tensor->node;
}

absl::Status SessionCore::CheckNotLeaf(absl::string_view name,
                                       const Tensor& tensor) {
  if (!tensor->requires_grad) return absl::OkStatus();
  const char* what = nullptr;
  if (tensor->is_leaf) {
    what =
        "a leaf Variable that requires grad is being used in an in-place "
        "operation.";
  } else {
    const GraphNode* node = tensor->node.get();
    while (node != nullptr && node->op != OpId::kCount &&
           GetOp(node->op).has(kView) && node->inputs.size() == 1) {
      node = node->inputs[0].get();
      if (node != nullptr && node->is_leaf()) {
        what =
            "a view of a leaf Variable that requires grad is being used in "
            "an in-place operation.";
      }
    }
  }
  if (what == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "[", name, "] ", what, " Got ", tensor->spec().ToString(), "."));
}

void SessionCore::RecordOutputs(const Attrs& attrs,
                                absl::Span<const Tensor> inputs,
                                absl::Span<const Tensor> outputs,
                                bool inplace) {
  const OpSchema& schema = attrs.schema();
  const uint8_t overload = ShownOverload(attrs, inputs);
  const auto new_node = [&] {
    RefPtr<GraphNode> node = MakeRef<GraphNode>();
    node->op = schema.id;
    node->op_sequence = op_sequence_.load(std::memory_order_relaxed);
    node->overload = overload;
    node->saves_nothing = saves_nothing_[static_cast<int>(schema.id)];
    for (const Tensor& input : inputs) {
      if (!input) continue;
      if (input->NeedsGrad()) {
        AddGraphEdges(*input, &node->inputs);
      } else {
        node->inputs.emplace_back();
      }
    }
    return node;
  };
  if (inplace) {
    TensorState* tensor = inputs[0].get();
    if (IsDifferentiable(tensor->spec().dtype)) SetWritten(tensor, new_node());
    return;
  }
  // A node each: nodes name tensors, not outputs.
  for (const Tensor& output : outputs) {
    if (!IsDifferentiable(output->spec().dtype)) continue;
    SetMade(output.get(), new_node());
  }
}

void SessionCore::ShowAs(const Tensor& result, const char* name,
                         absl::Span<const Tensor> inputs) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (result->is_leaf || !result->node) return;
  auto shown = std::make_unique<ShownFunction>();
  shown->name = name;
  for (const Tensor& input : inputs) {
    if (input == result) return;  // the function returned what it was given
    if (input->NeedsGrad()) {
      AddGraphEdges(*input, &shown->next);
    } else {
      shown->next.emplace_back();
    }
  }
  result->node->shown = std::move(shown);
}

// ---- marks

absl::Status SessionCore::SetRequiresGrad(const Tensor& tensor, bool value) {
  if (!usable()) return Unusable();
  absl::Status status = CheckOwner("requires_grad_", tensor);
  if (!status.ok()) return status;
  if (value && !IsDifferentiable(tensor->spec().dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[requires_grad_] only Tensors of floating point dtype can require "
        "gradients. Got ",
        tensor->spec().ToString(), "."));
  }
  if (value && tensor->storage()->memory().inference && !InferenceMode()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[requires_grad_] Setting requires_grad=True on inference tensor "
        "outside InferenceMode is not allowed. Make a clone() first. Got ",
        tensor->spec().ToString(), "."));
  }
  wire::Command command;
  command.mutable_set_requires_grad()->set_handle(tensor->handle());
  command.mutable_set_requires_grad()->set_requires_grad(value);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!tensor->is_leaf) {
    if (value) return absl::OkStatus();  // it requires one already
    return absl::InvalidArgumentError(absl::StrCat(
        "[requires_grad_] you can only change requires_grad flags of leaf "
        "variables. If you want to use a computed variable in a subgraph that "
        "doesn't require differentiation use var_no_grad = var.detach(). Got ",
        tensor->spec().ToString(), "."));
  }
  if (tensor->requires_grad == value) return absl::OkStatus();
  status = SendCommand(command);
  if (!status.ok()) return status;
  tensor->requires_grad = value;
  if (value) {
    tensor->node = tensor->unmarked_node ? std::move(tensor->unmarked_node)
                                         : MakeRef<GraphNode>();
    tensor->node->tensor = tensor.get();
  } else {
    tensor->node->tensor = nullptr;
    tensor->unmarked_node = std::move(tensor->node);
  }
  return absl::OkStatus();
}

absl::Status SessionCore::RetainGrad(const Tensor& tensor) {
  if (!usable()) return Unusable();
  absl::Status status = CheckOwner("retain_grad", tensor);
  if (!status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!tensor->requires_grad) {
    return absl::InvalidArgumentError(
        absl::StrCat("[retain_grad] can't retain_grad on Tensor that has "
                     "requires_grad=False. Got ",
                     tensor->spec().ToString(), "."));
  }
  if (tensor->is_leaf || tensor->retains_grad) return absl::OkStatus();
  tensor->retains_grad = true;
  tensor->node->tensor = tensor.get();
  return absl::OkStatus();
}

Tensor SessionCore::GetGrad(const Tensor& tensor) {
  Tensor lost;  // dropped after the lock
  std::lock_guard<std::mutex> lock(mutex_);
  if (tensor->grad && lost_.contains(tensor->grad->handle())) {
    lost = std::move(tensor->grad);
  }
  return tensor->grad;
}

absl::Status SessionCore::SetGrad(const Tensor& tensor, Tensor gradient) {
  if (gradient) {
    absl::Status status = CheckOwner("grad", gradient);
    if (status.ok()) status = SettleAll({tensor, gradient});
    if (!status.ok()) return status;
    if (gradient->spec().shape != tensor->spec().shape ||
        gradient->spec().dtype != tensor->spec().dtype) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[grad] the assigned gradient must have the tensor's shape and "
          "dtype. Got grad=",
          gradient->spec().ToString(), ", tensor=", tensor->spec().ToString(),
          "."));
    }
    if (gradient == tensor) {
      return absl::InvalidArgumentError(
          "[grad] can't assign Variable as its own grad.");
    }
  }
  // The old gradient leaves with the argument, after the lock.
  std::lock_guard<std::mutex> lock(mutex_);
  Tensor old = std::move(tensor->grad);
  tensor->grad = std::move(gradient);
  gradient = std::move(old);
  return absl::OkStatus();
}

bool SessionCore::DependsOnOthers(absl::Span<const Tensor> outputs,
                                  absl::Span<const Tensor> inputs) {
  std::lock_guard<std::mutex> lock(mutex_);
  GraphEdges edges;
  for (const Tensor& output : outputs) AddGraphEdges(*output, &edges);
  const Reach reach = FindReach(edges, {});
  for (const TensorState* tensor : reach.tensors) {
    const auto same = [&](const Tensor& x) { return x.get() == tensor; };
    if (absl::c_none_of(inputs, same)) return true;
  }
  return false;
}

// ---- backward

absl::Status SessionCore::CheckRoots(absl::Span<const Tensor> roots,
                                     absl::Span<const Tensor> gradients) {
  if (roots.empty()) {
    return absl::InvalidArgumentError(
        "[backward] there must be a tensor to differentiate. Got none.");
  }
  if (!gradients.empty() && gradients.size() != roots.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[backward] there must be one gradient per tensor. Got ",
        gradients.size(), " gradients for ", roots.size(), " tensors."));
  }
  for (size_t i = 0; i < roots.size(); ++i) {
    const TensorState& root = *roots[i];
    absl::Status status = CheckOwner("backward", roots[i]);
    if (!status.ok()) return status;
    if (!root.NeedsGrad()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[backward] element ", i,
          " of tensors does not require grad and does not have a grad_fn. Got ",
          root.spec().ToString(), "."));
    }
    if (gradients.empty() || !gradients[i]) {
      if (root.spec().numel() != 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "[backward] grad can be implicitly created only for scalar "
            "outputs. Got ",
            root.spec().ToString(), "."));
      }
      continue;
    }
    status = CheckOwner("backward", gradients[i]);
    if (!status.ok()) return status;
    if (gradients[i]->spec().shape != root.spec().shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("[backward] Mismatch in shape: grad_output[", i,
                       "] must have the shape of output[", i,
                       "]. Got grad_output=", gradients[i]->spec().ToString(),
                       ", output=", root.spec().ToString(), "."));
    }
  }
  return absl::OkStatus();
}

absl::Status SessionCore::PlanBackward(absl::Span<const Tensor> roots,
                                       absl::Span<const Tensor> gradients,
                                       const BackwardOptions& options,
                                       BackwardPlan* plan) {
  plan->begin_ns = ProfileBegin();
  absl::Status status = CheckRoots(roots, gradients);
  if (!status.ok()) return status;
  wire::Backward* backward = plan->command.mutable_backward();
  backward->set_retain_graph(options.retain_graph);
  backward->set_create_graph(options.create_graph);
  backward->set_detect_anomaly(options.detect_anomaly);
  // Our graph errs towards "depends", so the server must not insist.
  backward->set_allow_unused(true);
  GraphEdges edges;
  for (size_t i = 0; i < roots.size(); ++i) {
    backward->add_roots(roots[i]->handle());
    AddGraphEdges(*roots[i], &edges);
    const bool weighted = !gradients.empty() && gradients[i];
    backward->add_gradients(weighted ? gradients[i]->handle() : 0);
    if (weighted) AddGraphEdges(*gradients[i], &plan->gradient_edges);
  }
  plan->roots.assign(edges.begin(), edges.end());
  plan->reach = FindReach(plan->roots, plan->targets);
  if (options.create_graph && plan->reach.user_code) {
    plan->answers = MakeRef<GraphNode>();
    plan->answers->op = OpId::add;  // any op that is no view
  }
  bool missed = plan->targets.empty();
  for (const GraphNode* target : plan->targets) {
    missed |= target == nullptr || !target->on_path;
  }
  // Behind a released node nothing can be told; if all is found without it,
  // the server knows whether it is needed.
  if (plan->reach.released && missed) {
    return absl::InvalidArgumentError(kSecondTime);
  }
  return absl::OkStatus();
}

Tensor SessionCore::NameGradient(const TensorState& of, BackwardPlan* plan) {
  wire::Backward* backward = plan->command.mutable_backward();
  const uint64_t handle = next_handle_++;
  wire::Backward::Target* target = backward->add_targets();
  target->set_tensor(of.handle());
  target->set_grad(handle);
  Tensor gradient = NewTensor(handle, ContiguousLike(of.spec()));
  if (!backward->create_graph()) return gradient;
  SetMade(gradient.get(), plan->ResultNode());
  return gradient;
}

RefPtr<GraphNode> SessionCore::BackwardPlan::GradientNode() const {
  RefPtr<GraphNode> node = MakeRef<GraphNode>();
  node->op = OpId::add;  // any op that is no view
  node->inputs.assign(roots.begin(), roots.end());
  for (const auto& edge : gradient_edges) node->inputs.push_back(edge);
  return node;
}

RefPtr<GraphNode> SessionCore::BackwardPlan::ResultNode() const {
  RefPtr<GraphNode> node = GradientNode();
  if (answers) node->inputs.push_back(answers);
  return node;
}

bool SessionCore::PrepareUserCode(bool has_turn, BackwardPlan* plan) {
  // In anomaly mode backward is waited for, too.
  if (!plan->reach.user_code && !plan->command.backward().detect_anomaly()) {
    return true;
  }
  if (!has_turn) return false;
  plan->command.mutable_backward()->set_id(next_user_code_++);
  return true;
}

absl::Status SessionCore::SendBackward(const BackwardPlan& plan) {
  absl::Status status;
  if (NumericsChanged()) status = SendNumerics();
  if (status.ok()) status = SendCommand(plan.command);
  if (!status.ok()) return status;
  CountOp();
  Note(ProfiledKind::kBackward, op_sequence_.load(std::memory_order_relaxed),
       plan.begin_ns);
  // Two products for each one of the forward pass.
  CountCost(kLeastCost + 2 * std::exchange(recorded_cost_, 0));
  return absl::OkStatus();
}

absl::Status SessionCore::AfterBackward(const BackwardPlan& plan,
                                        const BackwardOptions& options,
                                        std::vector<bool>* unused) {
  unused->resize(plan.command.backward().targets_size());
  absl::Status status;
  if (plan.command.backward().id() != 0) {
    status = AnswerCalls(plan, options.interrupted, unused);
  }
  if (!options.retain_graph) {
    std::lock_guard<std::mutex> lock(mutex_);
    ReleaseGraph(plan.reach);
  }
  if (!status.ok()) return status;
  // Gradients accumulate in place, and rules read what was saved.
  if (exports_.load(std::memory_order_relaxed) == 0) return absl::OkStatus();
  return Synchronize(nullptr);
}

absl::Status SessionCore::Backward(absl::Span<const Tensor> roots,
                                   absl::Span<const Tensor> gradients,
                                   absl::Span<const Tensor> inputs,
                                   const BackwardOptions& options) {
  if (!usable()) return Unusable();
  if (absl::Status room = AwaitRoom(options.interrupted); !room.ok()) {
    return room;
  }
  for (const Tensor& input : inputs) {
    absl::Status status = CheckOwner("backward", input);
    if (!status.ok()) return status;
  }
  for (const auto& tensors : {roots, gradients, inputs}) {
    absl::Status status = SettleAll(tensors);
    if (!status.ok()) return status;
  }
  std::unique_lock<std::recursive_mutex> turn(user_code_turn_, std::defer_lock);
  BackwardPlan plan;
  while (true) {
    plan = BackwardPlan();
    absl::StatusOr<bool> sent = StartBackward(roots, gradients, inputs, options,
                                              turn.owns_lock(), &plan);
    if (!sent.ok()) return sent.status();
    if (*sent) break;
    turn.lock();
  }
  if (plan.command.backward().targets().empty()) return absl::OkStatus();
  std::vector<bool> unused;
  absl::Status status = AfterBackward(plan, options, &unused);
  if (!status.ok() || plan.fresh.empty()) return status;
  return ShowGradients(plan, unused, options.create_graph);
}

absl::StatusOr<bool> SessionCore::StartBackward(
    absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients,
    absl::Span<const Tensor> inputs, const BackwardOptions& options,
    bool has_turn, BackwardPlan* plan) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Tensor& input : inputs) {
    if (!input->requires_grad) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[backward] one of the inputs does not require grad. Got ",
          input->spec().ToString(), "."));
    }
    plan->targets.push_back(input->node.get());
  }
  absl::Status status = PlanBackward(roots, gradients, options, plan);
  if (!status.ok()) return status;
  if (!PrepareUserCode(has_turn, plan)) return false;
  std::vector<TensorState*> tensors = plan->reach.tensors;
  if (!inputs.empty()) {
    tensors.clear();
    for (const Tensor& input : inputs) {
      if (input->node->on_path) tensors.push_back(input.get());
    }
  }
  if (tensors.empty()) return true;
  const bool waits = plan->command.backward().id() != 0;
  // Some may be dying on another thread: their destructors wait for this
  // lock before they touch anything, so filling in a gradient is safe, and
  // taking a reference is not.
  for (TensorState* tensor : tensors) {
    if (tensor->grad && lost_.contains(tensor->grad->handle())) {
      plan->dropped.push_back(std::move(tensor->grad));
    }
    if (!tensor->grad) {
      Tensor gradient = NameGradient(*tensor, plan);
      // User code may look at .grad before there is anything to see.
      if (waits) {
        const int target = plan->command.backward().targets_size() - 1;
        plan->fresh.push_back({tensor->node, std::move(gradient), target});
      } else {
        tensor->grad = std::move(gradient);
      }
      continue;
    }
    auto* target = plan->command.mutable_backward()->add_targets();
    target->set_tensor(tensor->handle());
    target->set_grad(tensor->grad->handle());
    target->set_accumulate(true);
    if (!options.create_graph) continue;
    RefPtr<GraphNode> sum = plan->ResultNode();
    AddGraphEdges(*tensor->grad, &sum->inputs);
    MoveHistory(tensor->grad.get(), std::move(sum));
  }
  status = SendBackward(*plan);
  if (!status.ok()) return status;
  return true;
}

absl::StatusOr<std::vector<Tensor>> SessionCore::Grad(
    absl::Span<const Tensor> outputs, absl::Span<const Tensor> gradients,
    absl::Span<const Tensor> inputs, const BackwardOptions& options,
    bool allow_unused) {
  if (!usable()) return Unusable();
  if (absl::Status room = AwaitRoom(options.interrupted); !room.ok()) {
    return room;
  }
  if (inputs.empty()) {
    return absl::InvalidArgumentError(
        "[grad] there must be a tensor to differentiate with respect to. Got "
        "none.");
  }
  for (const Tensor& input : inputs) {
    absl::Status status = CheckOwner("grad", input);
    if (!status.ok()) return status;
  }
  for (const auto& tensors : {outputs, gradients, inputs}) {
    absl::Status status = SettleAll(tensors);
    if (!status.ok()) return status;
  }
  std::vector<Tensor> result;  // outlives the lock
  std::unique_lock<std::recursive_mutex> turn(user_code_turn_, std::defer_lock);
  BackwardPlan plan;
  while (true) {
    plan = BackwardPlan();
    absl::StatusOr<bool> sent =
        StartGrad(outputs, gradients, inputs, options, allow_unused,
                  turn.owns_lock(), &plan, &result);
    if (!sent.ok()) return sent.status();
    if (*sent) break;
    turn.lock();
  }
  if (plan.command.backward().targets().empty()) return result;
  std::vector<bool> unused;
  absl::Status status = AfterBackward(plan, options, &unused);
  if (!status.ok()) return status;
  size_t target = 0;
  for (size_t i = 0; i < result.size(); ++i) {
    if (!result[i] || !unused[target++]) continue;
    result[i] = nullptr;
  }
  return result;
}

absl::StatusOr<bool> SessionCore::StartGrad(absl::Span<const Tensor> outputs,
                                            absl::Span<const Tensor> gradients,
                                            absl::Span<const Tensor> inputs,
                                            const BackwardOptions& options,
                                            bool allow_unused, bool has_turn,
                                            BackwardPlan* plan,
                                            std::vector<Tensor>* result) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Tensor& input : inputs) {
    if (!input->NeedsGrad()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[grad] One of the differentiated Tensors does not require grad. "
          "Got ",
          input->spec().ToString(), "."));
    }
    plan->targets.push_back(input->node.get());
  }
  absl::Status status = PlanBackward(outputs, gradients, options, plan);
  if (!status.ok()) return status;
  for (const Tensor& input : inputs) {
    if (!allow_unused && !(input->node && input->node->on_path)) {
      return Unused(input->spec());
    }
  }
  if (!PrepareUserCode(has_turn, plan)) return false;
  for (const Tensor& input : inputs) {
    const bool used = input->node && input->node->on_path;
    result->push_back(used ? NameGradient(*input, plan) : nullptr);
  }
  if (plan->command.backward().targets().empty()) return true;
  status = SendBackward(*plan);
  if (!status.ok()) return status;
  return true;
}

}  // namespace holdfast::client
