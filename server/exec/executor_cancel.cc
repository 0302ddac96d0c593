// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: commands that the client has called back (CancelRequest). They keep
// their place in the stream and make what they promised, a failure each;
// nothing else happens.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/op_schema.h"
#include "server/exec/executor.h"

namespace holdfast {

void Executor::Cancel(uint64_t through, std::string where) {
  std::lock_guard<std::mutex> lock(cancel_mutex_);
  if (through <= cancel_through_.load(std::memory_order_relaxed)) return;
  cancel_where_ = std::move(where);
  cancel_through_.store(through, std::memory_order_relaxed);
  // What runs stops where it can, but never in the middle of writing what was
  // there before it.
  const uint64_t running = stop_.running();
  std::atomic_thread_fence(std::memory_order_acquire);
  if (running <= through && running != writer_.load()) {
    stop_.StopOne(running, absl::CancelledError("cancelled"));
  }
}

void Executor::ForgetCancel() {
  std::lock_guard<std::mutex> lock(cancel_mutex_);
  cancel_through_.store(0, std::memory_order_relaxed);
  cancel_where_.clear();
}

FailurePtr Executor::DroppedFailure(const std::string& op, uint64_t sequence) {
  auto failure = std::make_shared<OpFailure>();
  {
    std::lock_guard<std::mutex> lock(cancel_mutex_);
    failure->status = absl::CancelledError(
        cancel_where_.empty()
            ? absl::StrCat("[", op, "] cancelled")
            : absl::StrCat("[", op, "] cancelled at ", cancel_where_));
  }
  failure->op = op;
  failure->op_sequence = sequence;
  failure->reported = true;  // the client knows, having asked for it
  ++cancelled_;
  dropped_.push_back(failure);
  return failure;
}

void Executor::DropOp(const v1::OpCall& call, const OpSchema& schema) {
  FailurePtr failure;
  // The error of an op that did run is the one to tell.
  for (uint64_t handle : call.inputs()) {
    const TensorStore::Entry* entry = store_.Find(handle);
    if (entry == nullptr || entry->failure == nullptr) continue;
    if (absl::IsCancelled(entry->failure->status)) continue;
    failure = entry->failure;
    ++cancelled_;
    break;
  }
  if (failure == nullptr) failure = DroppedFailure(schema.name, op_sequence_);
  Spoil(call, schema, failure);
}

void Executor::DropBackward() {
  const std::unique_ptr<PendingBackward> dropped = std::move(backwards_.back());
  backwards_.pop_back();
  if (profile_ != nullptr) profile_->set_pass(nullptr);
  FailBackward(dropped->request,
               DroppedFailure("backward", dropped->op_sequence));
}

void Executor::SettleDropped(const v1::Command& command) {
  if (cancelled(op_sequence_ + 1)) return;
  // A read without a number may have come before the cancellation, and must not
  // show what was never written. The client sends a progress read behind it.
  switch (command.kind_case()) {
    case v1::Command::kOp:
    case v1::Command::kPut:
    case v1::Command::kBackward:
    case v1::Command::kOpen:
      break;
    case v1::Command::kRead:
      if (command.read().progress()) break;
      return;
    default:
      return;
  }
  for (const FailurePtr& failure : dropped_) {
    // What was to be written is as it was, and good for what comes.
    store_.Reported(*failure);
    for (const uint64_t handle : failure->gradients) {
      if (store_.Contains(handle)) cancelled_gradients_.push_back(handle);
    }
    failure->gradients.clear();
  }
  dropped_.clear();
}

void Executor::TellDropped(v1::ReadResult* result) {
  if (cancelled_ == 0) return;
  result->set_cancelled(cancelled_);
  for (const uint64_t handle : std::exchange(cancelled_gradients_, {})) {
    if (store_.Contains(handle)) result->add_lost(handle);
  }
}

}  // namespace holdfast
