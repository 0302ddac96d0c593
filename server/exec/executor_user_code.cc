// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: functions and hooks of the user's. They run where the user is: a
// backward that comes to one shows the client the gradients and waits.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/convert.h"
#include "proto/limits.h"
#include "server/exec/executor.h"
#include "server/exec/protocol_error.h"

namespace holdfast {
namespace {

// Handles that the server gives out, apart from all that a client may choose.
constexpr uint64_t kServerHandles = uint64_t{1} << 63;

}  // namespace

absl::Status Executor::ApplyRecordFunction(const v1::RecordFunction& record) {
  if (record.function() == 0 || record.inputs_size() > kMaxTensorsOfCall ||
      record.outputs_size() > kMaxTensorsOfCall ||
      record.name().size() > kMaxFunctionNameBytes) {
    return ProtocolError(absl::StrCat("a function needs a number, at most ",
                                      kMaxTensorsOfCall, " tensors and ",
                                      kMaxFunctionNameBytes, " bytes of name"));
  }
  FailurePtr failure;
  std::vector<Value> inputs, outputs;
  for (uint64_t handle : record.inputs()) {
    absl::StatusOr<Value> input = Value();
    if (handle != 0) input = Resolve(handle, &failure);
    if (!input.ok()) return input.status();
    inputs.push_back(*std::move(input));
  }
  std::vector<TensorSpec> specs;
  for (const auto& output : record.outputs()) {
    absl::StatusOr<Value> value = Value();
    if (output.handle() != 0) value = Resolve(output.handle(), &failure);
    if (!value.ok()) return value.status();
    specs.push_back(*value ? (*value)->spec() : TensorSpec());
    outputs.push_back(*std::move(value));
  }
  absl::Status status;
  if (failure == nullptr && full()) failure = FullFailure(record.name());
  if (failure == nullptr) {
    auto node = MakeRef<Node>(record.function(), record.name(), specs);
    node->op_sequence = op_sequence_;
    for (const Value& input : inputs) {
      const bool needs = input && input->requires_grad();
      node->edges.push_back(needs ? input->GradientEdge() : Edge());
      node->input_specs.push_back(input ? input->spec() : TensorSpec());
    }
    for (int i = 0; i < record.outputs_size() && status.ok(); ++i) {
      if (!outputs[i] || !IsDifferentiable(outputs[i]->spec().dtype)) continue;
      const auto& output = record.outputs(i);
      Value result = runner_.Alias(outputs[i]);
      result->SetHistory(node, static_cast<uint32_t>(i));
      if (output.written()) {
        AsTensor(result)->CountWrite("mark_dirty");
        status = CheckWritable(output.handle());
        if (status.ok()) status = NoteWrite(output.handle(), std::move(result));
      } else {
        store_.Put(output.handle(), std::move(result));
      }
    }
  }
  if (!status.ok()) failure = NewFailure(status, record.name());
  if (failure == nullptr) return absl::OkStatus();
  for (const auto& output : record.outputs()) {
    if (output.handle() != 0) store_.MarkFailed(output.handle(), failure);
  }
  return absl::OkStatus();
}

absl::Status Executor::ApplyRegisterHook(const v1::RegisterHook& request) {
  if (request.hook() == 0) return ProtocolError("a hook needs a number");
  FailurePtr failure;
  absl::StatusOr<Value> tensor = Resolve(request.tensor(), &failure);
  if (!tensor.ok()) return tensor.status();
  // What failed has no gradient, and what needs none has no node.
  if (failure != nullptr || !(*tensor)->requires_grad()) {
    return absl::OkStatus();
  }
  const Edge& edge = (*tensor)->GradientEdge();
  std::vector<UserCode::Hook>& hooks = edge.node->EnsureUser().hooks;
  if (request.remove()) {
    // A backward that calls them counts them: they go when none is under way.
    for (UserCode::Hook& hook : hooks) {
      if (hook.code == request.hook()) hook.code = 0;
    }
    edge.node->user->hooks_removed = true;
    return absl::OkStatus();
  }
  if (edge.node->user->hooks_removed && backwards_.empty()) {
    const auto removed = [](const UserCode::Hook& hook) {
      return hook.code == 0;
    };
    hooks.erase(std::remove_if(hooks.begin(), hooks.end(), removed),
                hooks.end());
    edge.node->user->hooks_removed = false;
  }
  if (hooks.size() >= kMaxHooks) {
    store_.MarkFailed(request.tensor(),
                      NewFailure(absl::InvalidArgumentError(absl::StrCat(
                                     "[register_hook] a tensor has at most ",
                                     kMaxHooks, " hooks. Got one more on ",
                                     (*tensor)->spec().ToString(), ".")),
                                 "register_hook"));
    return absl::OkStatus();
  }
  hooks.push_back({edge.output, request.hook()});
  return absl::OkStatus();
}

absl::Status Executor::ApplyPackSaved(const v1::PackSaved& request) {
  if (request.code() == 0) return ProtocolError("pack_saved needs a number");
  pack_code_ = request.code();
  pack_op_ = op_sequence_ + 1;
  return absl::OkStatus();
}

absl::Status Executor::ApplyRestoreOutput(const v1::RestoreOutput& request) {
  if (backwards_.empty() || !backwards_.back()->calling ||
      backwards_.back()->pass->called_node() == nullptr) {
    return ProtocolError("restore_output outside a function's call");
  }
  FailurePtr failure;
  absl::StatusOr<Value> tensor = Resolve(request.handle(), &failure);
  if (!tensor.ok()) return tensor.status();
  if (failure != nullptr) return absl::OkStatus();
  const RefPtr<Node>& node = backwards_.back()->pass->called_node();
  if (request.output() >= node->num_outputs()) {
    return ProtocolError(absl::StrCat("restore_output ", request.output(),
                                      " does not fit ", node->name()));
  }
  Value restored = runner_.Alias(*tensor);
  restored->SetHistory(node, request.output());
  store_.Put(request.handle(), std::move(restored));
  return absl::OkStatus();
}

void Executor::CallClient(PendingBackward& backward) {
  const UserCall& wanted = backward.pass->call();
  v1::BackwardCall call;
  call.set_id(backward.request.id());
  call.set_code(wanted.code);
  for (const Value& gradient : wanted.gradients) {
    auto* message = call.add_gradients();
    if (!gradient) continue;
    const uint64_t handle = kServerHandles + ++server_handles_;
    message->set_handle(handle);
    SpecToProto(gradient->spec(), message->mutable_spec());
    message->set_requires_grad(gradient->requires_grad());
    store_.Put(handle, gradient);
  }
  backward.calling = true;
  sink_->Call(std::move(call));
}

absl::Status Executor::ApplyBackwardAnswer(const v1::BackwardAnswer& answer) {
  if (backwards_.empty() || !backwards_.back()->calling) {
    return ProtocolError("an answer to no call");
  }
  if (answer.gradients_size() > kMaxTensorsOfCall) {
    return ProtocolError(absl::StrCat("an answer with more than ",
                                      kMaxTensorsOfCall, " gradients"));
  }
  FailurePtr failure;
  Values values;
  for (uint64_t handle : answer.gradients()) {
    absl::StatusOr<Value> value = Value();
    if (handle != 0) value = Resolve(handle, &failure);
    if (!value.ok()) return value.status();
    values.push_back(*std::move(value));
  }
  PendingBackward& top = *backwards_.back();
  top.calling = false;
  absl::Status status = StatusFromProto(answer.status());
  if (status.ok() && failure != nullptr) status = failure->status;
  if (status.ok()) status = top.pass->Answer(std::move(values));
  if (!status.ok()) EndBackward(status);
  return absl::OkStatus();
}

}  // namespace holdfast
