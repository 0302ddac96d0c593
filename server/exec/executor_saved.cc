// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: what an op's node keeps for backward, for a client that asks.
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/tape.h"
#include "ops/op_schema.h"
#include "proto/convert.h"
#include "server/exec/executor.h"

namespace holdfast {
namespace {

constexpr uint64_t kServerHandles = uint64_t{1} << 63;

std::string InputName(const OpSchema& op, size_t index, size_t count) {
  if (op.num_lists == 0) return op.params[op.tensor_params[index]].name;
  const size_t per_list = count / op.num_lists;
  return absl::StrCat(op.params[op.tensor_params[index / per_list]].name, ".",
                      index % per_list);
}

std::string AttributesOf(const Attrs& attrs) {
  std::string text;
  for (const int param : attrs.schema().attr_params) {
    const OpParam& of = attrs.schema().params[param];
    // An operand that is a tensor.
    if (of.tensor_slot >= 0 && IsNone(attrs.Get(of.attr_slot))) continue;
    absl::StrAppend(&text, of.name, "=", AttrToString(attrs.Get(of.attr_slot)),
                    "\n");
  }
  return text;
}

absl::Status CheckReadable(const Node& node) {
  if (node.released()) {
    return absl::FailedPreconditionError(
        "Trying to backward through the graph a second time (or directly "
        "access saved tensors after they have already been freed). Saved "
        "intermediate values of the graph are freed when you call .backward() "
        "or autograd.grad(). Specify retain_graph=True if you need to backward "
        "through the graph a second time or if you need to access saved "
        "tensors after calling backward.");
  }
  if (!node.packed()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "[", node.name(),
      "] what this op saves is with the saved_tensors_hooks of the program, "
      "and only a backward asks them for it."));
}

absl::Status CheckUnchanged(const Node& node, const SavedValue& saved) {
  if (saved.value->version() == saved.version) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "[", node.name(),
      "] one of the variables needed for gradient "
      "computation has been modified by an inplace operation: ",
      saved.value->spec().ToString(), " is at version ", saved.value->version(),
      "; expected version ", saved.version, " instead."));
}

}  // namespace

absl::StatusOr<v1::NameReply> Executor::OpenSaved(const v1::SavedOf& request) {
  FailurePtr failure;
  absl::StatusOr<Value> root = Resolve(request.root(), &failure);
  if (!root.ok()) return root.status();
  if (failure != nullptr) return failure->status;
  const Node* node =
      (*root)->requires_grad()
          ? FindRecorded((*root)->GradientEdge(), request.op_sequence())
          : nullptr;
  if (node == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("[saved] the graph of ", (*root)->spec().ToString(),
                     " has no node of op ", request.op_sequence(), "."));
  }
  if (absl::Status s = CheckReadable(*node); !s.ok()) return s;
  const Counting counting(this);
  if (full()) return WhyFull();
  v1::NameReply reply;
  reply.mutable_saved()->set_attributes(AttributesOf(node->attrs()));
  const OpSchema& op = node->attrs().schema();
  absl::Status status;
  const auto open = [&](const SavedValue& saved, std::string parameter,
                        uint32_t edge) {
    if (!saved.value || !status.ok()) return;
    status = CheckUnchanged(*node, saved);
    if (!status.ok()) return;
    v1::SavedTensor* tensor = reply.mutable_saved()->add_tensors();
    tensor->set_parameter(std::move(parameter));
    tensor->set_edge(edge);
    SpecToProto(saved.value->spec(), tensor->mutable_spec());
    tensor->set_handle(kServerHandles + ++server_handles_);
    // Without the history: the client has its own picture of that.
    store_.Put(tensor->handle(), runner_.Alias(saved.value));
  };
  uint32_t with_gradient = 0;
  for (size_t i = 0; i < node->saved_inputs.size(); ++i) {
    if (node->edges[i]) ++with_gradient;
    open(node->saved_inputs[i], InputName(op, i, node->saved_inputs.size()),
         node->edges[i] ? with_gradient : 0);
  }
  for (size_t i = 0; i < node->saved_outputs.size(); ++i) {
    open(node->saved_outputs[i], absl::StrCat("result.", i), 0);
  }
  if (status.ok()) return reply;
  for (const v1::SavedTensor& tensor : reply.saved().tensors()) {
    store_.Release(tensor.handle());
  }
  return status;
}

}  // namespace holdfast
