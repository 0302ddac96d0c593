// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: the Backward command.
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/engine.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "server/exec/executor.h"

namespace holdfast {
namespace {

// True if nothing but `value` itself refers to the memory, so that the leaf
// may keep it as its gradient.
bool SoleOwner(const Value& value) {
  return value->unique() && AsTensor(value)->storage()->unique();
}

}  // namespace

absl::Status Executor::ApplyBackward(const v1::Backward& backward) {
  ++op_sequence_;
  for (const auto& target : backward.targets()) {
    if (target.accumulate()) continue;
    if (absl::Status s = Promise(target.grad(), 1); !s.ok()) return s;
  }
  std::vector<Value> gradients;
  FailurePtr failure;
  std::vector<Value> targets;
  for (const auto& target : backward.targets()) {
    absl::StatusOr<Value> tensor = Resolve(target.tensor(), &failure);
    if (!tensor.ok()) return tensor.status();
    targets.push_back(*std::move(tensor));
    if (!target.accumulate()) continue;
    absl::StatusOr<Value> grad = Resolve(target.grad(), &failure);
    if (!grad.ok()) return grad.status();
  }
  std::vector<Value> roots, weights;
  for (uint64_t handle : backward.roots()) {
    absl::StatusOr<Value> root = Resolve(handle, &failure);
    if (!root.ok()) return root.status();
    roots.push_back(*std::move(root));
  }
  for (uint64_t handle : backward.gradients()) {
    absl::StatusOr<Value> weight = Value();
    if (handle != 0) weight = Resolve(handle, &failure);
    if (!weight.ok()) return weight.status();
    weights.push_back(*std::move(weight));
  }
  const size_t num_roots = roots.size();
  if (num_roots != weights.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("[protocol] backward needs one gradient per root. Got ",
                     num_roots, " roots, ", weights.size(), " gradients"));
  }
  absl::Status status;
  // The client knows what each op's inputs require, not what a rule made of
  // them: the gradient of a linear function, say, depends on nothing.
  if (failure == nullptr) {
    for (size_t i = roots.size(); i-- > 0;) {
      if (roots[i]->requires_grad()) continue;
      roots.erase(roots.begin() + i);
      weights.erase(weights.begin() + i);
    }
  }
  if (failure == nullptr) {
    BackwardOptions options;
    options.retain_graph = backward.retain_graph();
    options.create_graph = backward.create_graph();
    absl::StatusOr<std::vector<Value>> result =
        RunBackward(runner_, roots, weights, targets, options);
    roots.clear();
    weights.clear();
    if (result.ok()) {
      for (size_t i = 0; i < targets.size() && status.ok(); ++i) {
        Value gradient = std::exchange((*result)[i], Value());
        status = StoreGradient(backward.targets(i), targets[i],
                               std::move(gradient), backward);
      }
    } else {
      status = result.status();
    }
    if (!status.ok()) failure = NewFailure(status, "backward");
  }
  if (failure == nullptr) return absl::OkStatus();
  for (const auto& target : backward.targets()) {
    if (target.accumulate()) {
      store_.MarkFailed(target.grad(), failure);
    } else {
      store_.PutFailure(target.grad(), failure);
    }
  }
  return absl::OkStatus();
}

absl::Status Executor::StoreGradient(const v1::Backward::Target& target,
                                     const Value& tensor, Value gradient,
                                     const v1::Backward& backward) {
  const bool record = backward.create_graph();
  if (!gradient && !backward.allow_unused()) {
    return absl::InvalidArgumentError(
        "[backward] One of the differentiated Tensors appears to not have been "
        "used in the graph. Set allow_unused=True if this is the desired "
        "behavior.");
  }
  if (!gradient) {
    Attrs full(&GetOp(OpId::full));
    full.Set("size", tensor->spec().shape);
    full.Set("fill_value", 0.0);
    full.Set("dtype", tensor->spec().dtype);
    absl::StatusOr<Values> zeros = runner_.Emit(full, {}, false, false);
    if (!zeros.ok()) return zeros.status();
    gradient = (*zeros)[0];
  }
  if (target.accumulate()) {
    const TensorStore::Entry* entry = store_.Find(target.grad());
    const Value sum[] = {entry->tensor, gradient};
    Attrs add(&GetOp(OpId::add));
    // Recorded gradients must not be overwritten: the graph may need the old.
    absl::StatusOr<Values> added =
        runner_.Emit(add, sum, record, /*inplace=*/!record);
    if (!added.ok()) return added.status();
    if (record) store_.Put(target.grad(), (*added)[0]);
    return absl::OkStatus();
  }
  // The client promised itself a contiguous tensor of its own.
  const bool keep = record ? gradient->spec().contiguous()
                           : SoleOwner(gradient) &&
                                 gradient->spec().contiguous() &&
                                 gradient->spec().offset == 0;
  if (!keep) {
    Attrs clone(&GetOp(OpId::clone));
    absl::StatusOr<Values> copy =
        runner_.Emit(clone, {&gradient, 1}, record, false);
    if (!copy.ok()) return copy.status();
    gradient = (*copy)[0];
  }
  store_.Put(target.grad(), std::move(gradient));
  return absl::OkStatus();
}

}  // namespace holdfast
