// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: the Backward command.
#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "autograd/engine.h"
#include "ops/check.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "server/exec/executor.h"

namespace holdfast {
namespace {

// Backwards inside backwards: far more than programs nest, far less than the
// stack of a client that runs them.
constexpr size_t kMaxNested = 256;

// True if nothing but `value` itself refers to the memory, so that the leaf
// may keep it as its gradient.
bool SoleOwner(const Value& value) {
  return value->unique() && AsTensor(value)->storage()->unique();
}

}  // namespace

absl::Status Executor::ApplyBackward(const v1::Backward& backward) {
  runner_.set_client_op(++op_sequence_);
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
    // What an earlier backward failed to make, and told so, starts anew.
    const TensorStore::Entry* entry = store_.Find(target.grad());
    if (entry != nullptr && !entry->tensor && entry->failure != nullptr &&
        entry->failure->reported) {
      continue;
    }
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
  if (cancelled(op_sequence_) &&
      (failure == nullptr || absl::IsCancelled(failure->status))) {
    failure = DroppedFailure("backward", op_sequence_);
  }
  if (failure == nullptr && backwards_.size() >= kMaxNested) {
    failure = NewFailure(
        absl::ResourceExhaustedError(absl::StrCat(
            "[backward] at most ", kMaxNested,
            " backwards may run inside each other's functions and hooks")),
        "backward");
  }
  if (failure != nullptr) {
    FailBackward(backward, failure);
    return absl::OkStatus();
  }
  // The client knows what each op's inputs require, not what a rule made of
  // them: the gradient of a linear function, say, depends on nothing.
  for (size_t i = roots.size(); i-- > 0;) {
    if (roots[i]->requires_grad()) continue;
    roots.erase(roots.begin() + i);
    weights.erase(weights.begin() + i);
  }
  BackwardOptions options;
  options.retain_graph = backward.retain_graph();
  options.create_graph = backward.create_graph();
  options.user_code = backward.id() != 0;
  options.detect_anomaly = backward.detect_anomaly();
  auto pending = std::make_unique<PendingBackward>();
  pending->request = backward;
  pending->op_sequence = op_sequence_;
  pending->targets = targets;
  pending->pass = std::make_unique<BackwardPass>(runner_, std::move(roots),
                                                 std::move(weights),
                                                 std::move(targets), options);
  backwards_.push_back(std::move(pending));
  return absl::OkStatus();
}

void Executor::Continue(absl::FunctionRef<bool()> yield) {
  if (cancelled(backwards_.back()->op_sequence)) return DropBackward();
  if (ABSL_PREDICT_FALSE(profiling_)) return ContinueNoted(yield);
  ContinuePass(yield);
}

void Executor::ContinuePass(absl::FunctionRef<bool()> yield) {
  PendingBackward& top = *backwards_.back();
  runner_.set_client_op(top.op_sequence);
  stop_.Begin(top.op_sequence);
  absl::StatusOr<BackwardPass::State> state = BackwardPass::State::kDone;
  try {
    state = top.pass->Run(yield);
  } catch (...) {
    state = CaughtStatus("backward");
  }
  if (absl::IsCancelled(state.status()) && cancelled(top.op_sequence)) {
    return DropBackward();  // an op of it was stopped
  }
  if (!state.ok()) return EndBackward(state.status());
  switch (*state) {
    case BackwardPass::State::kRunning:
      return;
    case BackwardPass::State::kCalling:
      return CallClient(top);
    case BackwardPass::State::kDone:
      return EndBackward(absl::OkStatus());
  }
}

void Executor::EndBackward(absl::Status status) {
  const std::unique_ptr<PendingBackward> ended = std::move(backwards_.back());
  backwards_.pop_back();
  if (profile_ != nullptr) profile_->set_pass(nullptr);
  const v1::Backward& request = ended->request;
  v1::BackwardCall done;
  if (status.ok()) {
    // Nothing stops in the middle of adding to a gradient.
    stop_.Begin(StopSignal::kNone);
    std::vector<Value> gradients = ended->pass->TakeResults();
    const std::vector<bool> unused = ended->pass->TakeUnused();
    ended->pass.reset();
    for (size_t i = 0; i < gradients.size() && status.ok(); ++i) {
      if (unused[i]) {
        done.add_unused(static_cast<uint32_t>(i));
        continue;
      }
      status =
          StoreGradient(request.targets(static_cast<int>(i)), ended->targets[i],
                        std::exchange(gradients[i], Value()), request);
    }
  }
  if (!status.ok()) {
    FailBackward(request, NewFailure(status, "backward", ended->op_sequence));
  } else if (request.id() != 0) {
    // The client drops its handles of these when it hears so.
    for (const uint32_t i : done.unused()) {
      const auto& target = request.targets(static_cast<int>(i));
      if (!target.accumulate()) store_.Put(target.grad(), ended->targets[i]);
    }
    done.set_id(request.id());
    done.set_done(true);
    sink_->Call(std::move(done));
  }
}

void Executor::FailBackward(const v1::Backward& request,
                            const FailurePtr& failure) {
  for (const auto& target : request.targets()) {
    if (target.accumulate()) {
      store_.MarkFailed(target.grad(), failure);
    } else {
      store_.PutFailure(target.grad(), failure);
      failure->gradients.push_back(target.grad());
    }
  }
  if (request.id() == 0) return;
  v1::BackwardCall call;
  call.set_id(request.id());
  call.set_done(true);
  ReportFailure(*failure, call.mutable_status());
  sink_->Call(std::move(call));
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
    full.set_device(tensor->spec().device);
    absl::StatusOr<Values> zeros = runner_.Emit(full, {}, false, false);
    if (!zeros.ok()) return zeros.status();
    gradient = (*zeros)[0];
  }
  // What user code gave may be elsewhere.
  if (gradient->spec().device != tensor->spec().device) {
    Attrs move(&GetOp(OpId::to_device));
    move.Set("device", int64_t{tensor->spec().device});
    absl::StatusOr<Values> moved =
        runner_.Emit(move, {&gradient, 1}, record, false);
    if (!moved.ok()) return moved.status();
    gradient = (*moved)[0];
  }
  const TensorStore::Entry* entry =
      target.accumulate() ? store_.Find(target.grad()) : nullptr;
  if (entry != nullptr && entry->tensor) {
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
