// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionCore: the program's own functions and hooks in the graph. A backward
// that meets some is waited for: the server asks, the calling thread runs the
// code, whose ops travel as any others, and answers.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/interrupt.h"
#include "client/session_core.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "proto/convert.h"
#include "proto/limits.h"

namespace holdfast::client {

namespace {

// A function's edges are copied to the nodes of its outputs, up to so many.
constexpr size_t kManyEdges = 256;

// A backward shows all outputs' gradients in one event.
absl::Status CheckCallBytes(absl::string_view name,
                            absl::Span<const Tensor> outputs) {
  size_t bytes = 0;
  for (const Tensor& output : outputs) {
    bytes += DescriptionBytes(0, output ? output->spec().rank() : 0);
  }
  if (bytes <= kMaxCallBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "[", name,
      "] what a backward tells of a function's outputs must have at "
      "most ",
      kMaxCallBytes, " bytes. Got ", bytes, " of ", outputs.size(),
      " outputs."));
}

// A name for messages, cut between characters of UTF-8.
std::string ShortName(std::string name) {
  if (name.size() <= kMaxFunctionNameBytes) return name;
  size_t size = kMaxFunctionNameBytes;
  while (size > 0 && (name[size] & 0xC0) == 0x80) --size;
  name.resize(size);
  return name;
}

}  // namespace

absl::Status SessionCore::CheckUserCode() const {
  // An older daemon would pass over the commands, and the gradients be wrong.
  if (op_ids_[static_cast<int>(OpId::variable_data)] != kNoSuchOp) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat("[backward] functions and hooks need a newer daemon. Got ",
                   hello_.server(), ". Use the same version on both sides."));
}

absl::StatusOr<SavedMasks> SessionCore::Saved(const OpSchema& schema,
                                              absl::Span<const Tensor> inputs) {
  if (saves_.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("[saved_tensors_hooks] hooks on saved tensors need a "
                     "newer daemon. Got ",
                     hello_.server(), ". Use the same version on both sides."));
  }
  SavedMasks saved;
  if (schema.has(kNoGrad)) return saved;
  uint32_t needing = 0;  // bit 31: some input from there on
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] && inputs[i]->NeedsGrad()) {
        needing |= 1u << std::min<size_t>(i, 31);
      }
    }
  }
  if (needing == 0) return saved;
  const wire::OpSaves& saves = saves_[static_cast<int>(schema.id)];
  saved.inputs = saves.inputs();
  saved.outputs = saves.outputs();
  for (int i = 0; i < 32; ++i) {
    const uint32_t bit = 1u << i;
    if ((saves.serves_others() & bit) != 0 && (needing & ~bit) == 0) {
      saved.inputs &= ~bit;
    }
  }
  return saved;
}

uint64_t SessionCore::Register(const std::shared_ptr<UserCode>& code) {
  // Dead entries are swept when the table has doubled.
  if (user_code_.size() >= user_code_sweep_) {
    for (auto it = user_code_.begin(); it != user_code_.end();) {
      const auto entry = it++;
      if (entry->second.expired()) user_code_.erase(entry);
    }
    user_code_sweep_ = std::max<size_t>(64, 2 * user_code_.size());
  }
  const uint64_t number = next_user_code_++;
  user_code_[number] = code;
  return number;
}

absl::StatusOr<int64_t> SessionCore::RecordFunction(
    std::shared_ptr<UserCode> function, absl::Span<const Tensor> inputs,
    absl::Span<const Tensor> outputs, const std::vector<bool>& written,
    absl::Span<const Tensor> behind) {
  if (!usable()) return Unusable();
  if (absl::Status known = CheckUserCode(); !known.ok()) return known;
  for (const auto& tensors : {inputs, outputs, behind}) {
    for (const Tensor& tensor : tensors) {
      if (!tensor) continue;
      absl::Status status = CheckOwner(function->name(), tensor);
      if (!status.ok()) return status;
    }
    absl::Status status = SettleAll(tensors);
    if (!status.ok()) return status;
  }
  absl::Status few =
      CheckCount(function->name(),
                 std::max(inputs.size() + behind.size(), outputs.size()));
  if (few.ok()) few = CheckCallBytes(function->name(), outputs);
  if (!few.ok()) return few;
  wire::Command command;
  wire::RecordFunction* record = command.mutable_record_function();
  record->set_name(ShortName(function->name()));
  std::lock_guard<std::mutex> lock(mutex_);
  GraphEdges edges;
  for (const Tensor& input : inputs) {
    const bool needs = input && input->NeedsGrad();
    record->add_inputs(needs ? input->handle() : 0);
    if (needs) {
      AddGraphEdges(*input, &edges);
    } else {
      edges.emplace_back();  // next_functions lists every input
    }
  }
  GraphEdges roots;
  for (const Tensor& tensor : behind) {
    if (tensor) AddGraphEdges(*tensor, &roots);
  }
  int64_t leaves = 0;
  // One that is dying releases its handle after this command.
  for (const TensorState* leaf : FindReach(roots, {}).tensors) {
    if (!leaf->is_leaf) continue;
    record->add_inputs(leaf->handle());
    edges.push_back(leaf->node);
    ++leaves;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto* output = record->add_outputs();
    const bool takes = outputs[i] && IsDifferentiable(outputs[i]->spec().dtype);
    output->set_handle(takes ? outputs[i]->handle() : 0);
    output->set_written(takes && written[i]);
    if (!takes || !written[i]) continue;
    absl::Status status = CheckNotLeaf(function->name(), outputs[i]);
    if (!status.ok()) return status;
  }
  record->set_function(Register(function));
  absl::Status status = SendCommand(command);
  if (!status.ok()) return status;
  if (edges.size() > kManyEdges && outputs.size() > 1) {
    // One list for all outputs.
    auto all = MakeRef<GraphNode>();
    all->function = function;
    all->inputs.assign(edges.begin(), edges.end());
    edges = {std::move(all)};
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (record->outputs(static_cast<int>(i)).handle() == 0) continue;
    auto node = MakeRef<GraphNode>();
    node->function = function;
    node->inputs.assign(edges.begin(), edges.end());
    if (written[i]) {
      ++outputs[i]->storage()->version();
      SetWritten(outputs[i].get(), std::move(node));
    } else {
      SetMade(outputs[i].get(), std::move(node));
    }
  }
  return leaves;
}

absl::StatusOr<uint64_t> SessionCore::RegisterHook(
    const Tensor& tensor, std::shared_ptr<UserCode> hook) {
  if (!usable()) return Unusable();
  absl::Status status = CheckUserCode();
  if (status.ok()) status = CheckOwner("register_hook", tensor);
  if (!status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!tensor->NeedsGrad()) {
    return absl::InvalidArgumentError(
        absl::StrCat("[register_hook] cannot register a hook on a tensor that "
                     "doesn't require gradient. Got ",
                     tensor->spec().ToString(), "."));
  }
  GraphEdges nodes;
  AddGraphEdges(*tensor, &nodes);
  const size_t most = parts_ ? kMaxHooks : 1 << 12;
  if (nodes.back()->hooks.size() >= most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[register_hook] a tensor must have at most ", most,
        " hooks. Got one more on ", tensor->spec().ToString(), "."));
  }
  const uint64_t number = Register(hook);
  wire::Command command;
  command.mutable_register_hook()->set_tensor(tensor->handle());
  command.mutable_register_hook()->set_hook(number);
  status = SendCommand(command);
  if (!status.ok()) return status;
  nodes.back()->hooks.emplace_back(number, std::move(hook));
  return number;
}

void SessionCore::RemoveHook(const Tensor& tensor, uint64_t number) {
  std::shared_ptr<UserCode> removed;  // dropped after the lock
  std::lock_guard<std::mutex> lock(mutex_);
  user_code_.erase(number);
  GraphEdges nodes;
  AddGraphEdges(*tensor, &nodes);
  for (const RefPtr<GraphNode>& node : nodes) {
    for (auto it = node->hooks.begin(); it != node->hooks.end(); ++it) {
      if (it->first != number) continue;
      removed = std::move(it->second);
      node->hooks.erase(it);
      if (!parts_ || ended_.load(std::memory_order_relaxed)) return;
      wire::Command command;
      command.mutable_register_hook()->set_tensor(tensor->handle());
      command.mutable_register_hook()->set_hook(number);
      command.mutable_register_hook()->set_remove(true);
      static_cast<void>(SendCommand(command));
      return;
    }
  }
}

absl::Status SessionCore::RestoreOutput(
    const Tensor& tensor, const std::function<bool(const UserCode&)>& own,
    uint32_t output) {
  if (!usable()) return Unusable();
  absl::Status status = CheckOwner("saved_tensors", tensor);
  if (!status.ok()) return status;
  wire::Command command;
  command.mutable_restore_output()->set_handle(tensor->handle());
  command.mutable_restore_output()->set_output(output);
  std::lock_guard<std::mutex> lock(mutex_);
  if (answering_.empty() || answering_.back()->function == nullptr ||
      !own(*answering_.back()->function)) {
    return absl::InvalidArgumentError(
        "[saved_tensors] a saved output is available while its function's "
        "backward runs.");
  }
  status = SendCommand(command);
  if (!status.ok()) return status;
  auto node = MakeRef<GraphNode>();
  node->function = answering_.back()->function;
  node->inputs.assign(answering_.back()->depends_on.begin(),
                      answering_.back()->depends_on.end());
  SetMade(tensor.get(), std::move(node));
  return absl::OkStatus();
}

absl::StatusOr<wire::BackwardCall> SessionCore::NextCall(
    uint64_t id, const std::function<bool()>& interrupted, bool* stop) {
  std::unique_lock<std::mutex> lock(reads_mutex_);
  while (calls_.empty()) {
    if (ended_.load(std::memory_order_acquire)) return Unusable();
    WaitForEvents(&lock);
    if (!calls_.empty() || interrupted == nullptr) continue;
    lock.unlock();
    const uint64_t interrupts = g_interrupts.load();
    if (interrupted()) {
      *stop = true;
      NoteInterrupt(interrupts);
    }
    lock.lock();
  }
  wire::BackwardCall call = std::move(calls_.front());
  calls_.pop_front();
  lock.unlock();
  if (call.id() == id) return call;
  absl::Status status = absl::InternalError(
      absl::StrCat("[backward] the daemon's calls must nest. Got one of ",
                   call.id(), " during ", id, "."));
  End(status);
  return status;
}

absl::Status SessionCore::RunCall(const wire::BackwardCall& call,
                                  const BackwardPlan& plan) {
  const bool create_graph = plan.command.backward().create_graph();
  Answering answering;
  std::vector<Tensor> gradients, results;
  std::shared_ptr<UserCode> code;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& gradient : call.gradients()) {
      gradients.push_back(nullptr);
      if (gradient.handle() == 0) continue;
      absl::StatusOr<TensorSpec> spec = SpecFromProto(gradient.spec());
      if (!spec.ok()) return spec.status();
      Tensor tensor = NewTensor(gradient.handle(), *std::move(spec));
      if (gradient.requires_grad()) {
        SetMade(tensor.get(), plan.GradientNode());
      }
      gradients.back() = std::move(tensor);
    }
    const auto found = user_code_.find(call.code());
    if (found != user_code_.end()) code = found->second.lock();
    answering.function = code;
    answering.depends_on.assign(plan.roots.begin(), plan.roots.end());
    answering_.push_back(&answering);
  }
  absl::Status status;
  if (code != nullptr) {
    status = code->Run(gradients, create_graph, &results);
  } else {
    // A hook that was removed: nothing changes. (A function cannot be gone
    // while the plan holds its node, or the node of what answered with it.)
    results.assign(1, nullptr);
  }
  for (const Tensor& result : results) {
    if (!status.ok() || !result) continue;
    status = CheckOwner("backward", result);
    if (status.ok()) status = Settle(result, nullptr);
  }
  wire::Command command;
  wire::BackwardAnswer* answer = command.mutable_backward_answer();
  if (status.ok()) {
    for (const Tensor& result : results) {
      answer->add_gradients(result ? result->handle() : 0);
    }
  } else {
    StatusToProto(status, answer->mutable_status());
  }
  std::lock_guard<std::mutex> lock(mutex_);
  answering_.pop_back();
  for (const Tensor& result : results) {
    if (!status.ok() || !plan.answers || !result || !result->NeedsGrad()) {
      continue;
    }
    AddGraphEdges(*result, &plan.answers->inputs);
  }
  return SendCommand(command);
}

absl::Status SessionCore::AnswerCalls(const BackwardPlan& plan,
                                      const std::function<bool()>& stop_asked,
                                      std::vector<bool>* unused) {
  const uint64_t id = plan.command.backward().id();
  bool stop = false;
  while (true) {
    absl::StatusOr<wire::BackwardCall> call = NextCall(id, stop_asked, &stop);
    if (!call.ok()) return call.status();
    if (call->done()) {
      if (stop) return absl::CancelledError("[backward] it was interrupted.");
      for (const uint32_t target : call->unused()) {
        if (target < unused->size()) (*unused)[target] = true;
      }
      return ToAbslStatus(call->status());
    }
    absl::Status status;
    if (stop) {
      // The interrupt is raised once the server has let go of the graph.
      wire::Command command;
      for (const auto& gradient : call->gradients()) {
        if (gradient.handle() != 0) command.add_release(gradient.handle());
      }
      StatusToProto(absl::CancelledError("[backward] it was interrupted."),
                    command.mutable_backward_answer()->mutable_status());
      std::lock_guard<std::mutex> lock(mutex_);
      status = SendCommand(command);
    } else {
      status = RunCall(*call, plan);
    }
    if (!status.ok()) return status;
  }
}

absl::Status SessionCore::ShowGradients(const BackwardPlan& plan,
                                        const std::vector<bool>& unused,
                                        bool create_graph) {
  struct Sum {
    GraphNode* node;
    Tensor before;
    Tensor gradient;
  };
  std::vector<Sum> sums;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [node, gradient, target] : plan.fresh) {
      if (node->tensor == nullptr || unused[target]) continue;
      if (node->tensor->grad) {
        sums.push_back({node.get(), node->tensor->grad, gradient});
      } else {
        node->tensor->grad = gradient;
      }
    }
  }
  const Attrs add(&GetOp(OpId::add));
  for (Sum& sum : sums) {
    Tensor total;
    absl::Status status = Apply(add, {sum.before, sum.gradient}, false,
                                create_graph, absl::MakeSpan(&total, 1));
    if (!status.ok()) return status;
    // `total` takes the old gradient along, which leaves after the lock.
    std::lock_guard<std::mutex> lock(mutex_);
    if (sum.node->tensor != nullptr) std::swap(sum.node->tensor->grad, total);
  }
  return absl::OkStatus();
}

}  // namespace holdfast::client
