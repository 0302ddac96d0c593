// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// BackwardPass: what it asks of the user's code, and the answers.
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "autograd/engine.h"
#include "autograd/tape.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {

void BackwardPass::CallNextHook(uint32_t index) {
  Task& task = tasks_[index];
  const UserCode* user = task.node->user.get();
  if (user == nullptr || !options_.user_code) return;
  while (task.hooks_run < user->hooks.size()) {
    const UserCode::Hook& hook = user->hooks[task.hooks_run++];
    if (hook.code == 0 || hook.output >= task.slots.size() ||
        !task.slots[hook.output].value) {
      continue;
    }
    call_ = {hook.code, UserCall::Kind::kHook, {task.slots[hook.output].value}};
    calling_task_ = index;
    calling_ = true;
    return;
  }
}

absl::StatusOr<Value> BackwardPass::Fit(const Node& node, size_t input,
                                        Value grad) {
  const TensorSpec& want = node.input_specs[input];
  if (grad->spec().shape != want.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[backward] Function ", node.name(),
        "Backward returned an invalid gradient at index ", input, " - got ",
        grad->spec().ToString(), " but expected shape compatible with ",
        want.ToString(), "."));
  }
  if (grad->spec().dtype != want.dtype) {
    Attrs attrs(&GetOp(OpId::to));
    attrs.Set("dtype", want.dtype);
    absl::StatusOr<Value> cast = Emit(attrs, {&grad, 1}, /*inplace=*/false);
    if (!cast.ok()) return cast.status();
    grad = *std::move(cast);
  }
  return Moved(std::move(grad), want.device);
}

absl::StatusOr<Value> BackwardPass::Moved(Value grad, int device) {
  if (grad->spec().device == device) return grad;
  Attrs attrs(&GetOp(OpId::to_device));
  attrs.Set("device", int64_t{device});
  return Emit(attrs, {&grad, 1}, /*inplace=*/false);
}

absl::Status BackwardPass::AnswerHook(Values values) {
  if (values.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[backward] a hook answers with one gradient. Got ", values.size()));
  }
  if (values[0]) {
    Task& task = tasks_[calling_task_];
    Slot& slot = task.slots[task.node->user->hooks[task.hooks_run - 1].output];
    if (values[0]->spec().shape != slot.value->spec().shape ||
        values[0]->spec().dtype != slot.value->spec().dtype) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[backward] a hook must keep the gradient's shape and dtype. Got ",
          values[0]->spec().ToString(), " for ", slot.value->spec().ToString(),
          "."));
    }
    absl::StatusOr<Value> moved =
        Moved(std::move(values[0]), slot.value->spec().device);
    if (!moved.ok()) return moved.status();
    slot = {*std::move(moved), false};
  }
  return RunNode(calling_task_);
}

absl::Status BackwardPass::AnswerUnpack(Values values) {
  Node* node = tasks_[calling_task_].node;
  // The code may have started a backward that came by here, too.
  if (node->packed()) {
    absl::Status status = node->Unpack(std::move(values), sink_);
    if (!status.ok()) {
      node->ForgetUnpacked();
      return WithForwardOp(status, *node);
    }
  }
  return RunRule(calling_task_);
}

absl::Status BackwardPass::Answer(Values values) {
  calling_ = false;
  call_.gradients.clear();
  if (call_.kind == UserCall::Kind::kHook) return AnswerHook(std::move(values));
  if (call_.kind == UserCall::Kind::kUnpack) {
    return AnswerUnpack(std::move(values));
  }
  called_node_.reset();
  Node* node = tasks_[calling_task_].node;
  if (values.size() != node->edges.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[backward] function ", node->name(),
        "Backward returned an incorrect number of gradients (expected ",
        node->edges.size(), ", got ", values.size(), ")"));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i] || !wanted(node->edges[i])) continue;
    absl::StatusOr<Value> fit = Fit(*node, i, std::move(values[i]));
    if (!fit.ok()) return fit.status();
    values[i] = *std::move(fit);
  }
  return Pass(node, absl::MakeSpan(values));
}

}  // namespace holdfast
