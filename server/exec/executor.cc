// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/executor.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "autograd/engine.h"
#include "ops/check.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "ops/place_op.h"
#include "proto/convert.h"
#include "proto/limits.h"
#include "server/exec/protocol_error.h"
#include "server/exec/published_tensors.h"
#include "server/log/stack_text.h"

namespace holdfast {
namespace {

// Handles are counted up by one client; a gap this large is a broken client,
// and would let it exhaust the counter.
constexpr uint64_t kMaxHandle = uint64_t{1} << 62;

}  // namespace

Executor::Executor(Device* device, ReplySink* sink, Options options)
    : device_(device),
      sink_(sink),
      options_(options),
      heap_(options.account),
      local_(options.local),
      owned_memory_(std::make_shared<CachingAllocator>(
          device->CreateMemory((options.local || options.mappable) &&
                               device->host_memory()),
          options.memory_limit_bytes, options.stream, options.account)),
      memory_(*owned_memory_),
      shared_(options.shared != nullptr ? options.shared
                                        : std::make_shared<SharedStorages>()),
      names_(options.names != nullptr ? options.names
                                      : std::make_shared<PublishedTensors>(
                                            device, shared_, nullptr)),
      guard_(device->CreateMemory(/*shared=*/false), options.memory_limit_bytes,
             options.stream, options.account),
      devices_({device, options.stream, &memory_,
                options.local && device->host_memory() ? &guard_ : nullptr,
                !device->host_memory()},
               options.further_devices, options.memory_limit_bytes,
               options.account, options.priority),
      runner_(&devices_) {
  if (!device->host_memory()) {
    std::vector<Device*> all = {device};
    all.insert(all.end(), options.further_devices.begin(),
               options.further_devices.end());
    staging_.emplace(std::move(all), options.local || options.mappable,
                     options.memory_limit_bytes, options.account);
  }
  runner_.set_stop(&stop_);
  set_count_limits(options.max_handles, options.max_graph_nodes);
  heap_.set_limit_bytes(options.memory_limit_bytes);
  // As PyTorch's: two programs that set no seed draw different numbers.
  std::random_device entropy;
  runner_.SetRandom({uint64_t{entropy()} << 32 | entropy(), 0});
}

Executor::~Executor() {
  // This may be any thread, such as a transport's that let go last. What
  // sessions share is the worker's, and was let go when this session ended.
  if (client_life_ != nullptr) Clear();
  device_->DestroyStream(options_.stream);
}

void Executor::Clear(bool leave_mapped) {
  kept_.clear();
  kept_bytes_ = 0;
  DropHandles();
  client_life_.reset();  // no client comes any more
  ReleaseCached(leave_mapped);
}

void Executor::ReleaseCached(bool leave_mapped) {
  if (!leave_mapped || staging_) memory_.ReleaseCached();
  guard_.ReleaseCached();
  devices_.ReleaseCached();
  if (staging_) staging_->ReleaseCached(leave_mapped);
}

absl::Status Executor::Apply(const v1::Command& command) {
  if (ABSL_PREDICT_FALSE(command.has_part())) return ApplyPart(command.part());
  if (ABSL_PREDICT_FALSE(profiling_)) return ApplyNoted(command);
  return ApplyCommand(command);
}

absl::Status Executor::ApplyPart(const v1::Part& part) {
  if (part.data().size() > kMaxCommandBytes - parts_.size()) {
    return ProtocolError(
        absl::StrCat("a command has at most ", kMaxCommandBytes, " bytes"));
  }
  parts_ += part.data();
  if (!part.last()) return absl::OkStatus();
  const std::string whole = std::exchange(parts_, std::string());
  google::protobuf::Arena arena;
  auto* command = google::protobuf::Arena::CreateMessage<v1::Command>(&arena);
  if (!command->ParseFromString(whole) || command->has_part()) {
    return ProtocolError("the parts of a command must be one");
  }
  return Apply(*command);
}

absl::Status Executor::ApplyCommand(const v1::Command& command) {
  stop_.Begin(StopSignal::kNone);
  if (ABSL_PREDICT_FALSE(!dropped_.empty())) SettleDropped(command);
  for (uint64_t handle : command.release()) {
    if (!store_.Release(handle)) {
      return ProtocolError(absl::StrCat("release of unknown handle ", handle));
    }
  }
  switch (command.kind_case()) {
    case v1::Command::kOp:
      return ApplyOp(command.op());
    case v1::Command::kPut:
      return ApplyPut(command.put());
    case v1::Command::kSetRequiresGrad:
      return ApplySetRequiresGrad(command.set_requires_grad());
    case v1::Command::kBackward:
      return ApplyBackward(command.backward());
    case v1::Command::kRead:
      return ApplyRead(command.read());
    case v1::Command::kKeep:
      return ApplyKeep(command.keep());
    case v1::Command::kSetSeed:
      runner_.SetRandom(
          {command.set_seed().seed(), command.set_seed().offset()});
      return absl::OkStatus();
    case v1::Command::kRecordFunction:
      return ApplyRecordFunction(command.record_function());
    case v1::Command::kRegisterHook:
      return ApplyRegisterHook(command.register_hook());
    case v1::Command::kPackSaved:
      return ApplyPackSaved(command.pack_saved());
    case v1::Command::kRestoreOutput:
      return ApplyRestoreOutput(command.restore_output());
    case v1::Command::kBackwardAnswer:
      return ApplyBackwardAnswer(command.backward_answer());
    case v1::Command::kResetPeakMemory:
      memory_.ResetPeak();
      devices_.ResetPeak();
      return absl::OkStatus();
    case v1::Command::kReleaseMemory:
      ReleaseCached();
      return absl::OkStatus();
    case v1::Command::kSetNumerics:
      SetNumerics(command.set_numerics());
      return absl::OkStatus();
    case v1::Command::kProfile:
      return ApplyProfile(command.profile());
    case v1::Command::kOpen:
      return ApplyOpen(command.open());
    case v1::Command::kNames:
      return ApplyNames(command.names());
    case v1::Command::kPart:  // Apply has put it together
    case v1::Command::KIND_NOT_SET:
      return absl::OkStatus();  // releases only
  }
  return ProtocolError("unknown command");
}

void Executor::SetNumerics(const v1::SetNumerics& wish) {
  Numerics numerics;
  numerics.matmul_tf32 = wish.matmul_tf32();
  numerics.conv_tf32 = !wish.conv_float32();
  numerics.deterministic = wish.deterministic();
  numerics.benchmark = wish.benchmark();
  numerics.cudnn = !wish.without_cudnn();
  devices_.SetNumerics(numerics);
}

absl::Status Executor::Promise(uint64_t first, int count) {
  // Strictly increasing, so a handle can neither be reused nor forged.
  if (first <= highest_handle_ || first >= kMaxHandle) {
    return ProtocolError(absl::StrCat("output handle ", first,
                                      " must be above ", highest_handle_));
  }
  highest_handle_ = first + count - 1;
  if (ABSL_PREDICT_FALSE(full())) return CheckSpent();
  return absl::OkStatus();
}

absl::StatusOr<Value> Executor::Resolve(uint64_t handle, FailurePtr* failure) {
  TensorStore::Entry* entry = store_.Find(handle);
  if (entry == nullptr) {
    return ProtocolError(absl::StrCat("unknown handle ", handle,
                                      " (released, or of another "
                                      "session)"));
  }
  if (entry->failure != nullptr) {
    if (*failure == nullptr) *failure = entry->failure;
    return Value();
  }
  if (entry->history && entry->seen_writes != entry->history->writes()) {
    absl::Status s;
    try {
      s = RefreshHistory(entry);
    } catch (...) {
      s = CaughtStatus("view");
    }
    if (!s.ok()) {
      if (*failure == nullptr) *failure = NewFailure(s, "view");
      return Value();
    }
  }
  return entry->tensor;
}

FailurePtr Executor::NewFailure(const absl::Status& status,
                                const std::string& op, uint64_t sequence) {
  auto failure = std::make_shared<OpFailure>();
  if (absl::IsResourceExhausted(status)) {
    ++limit_hits_;
    last_limit_hit_ = std::string(status.message());
  }
  failure->status = status;
  if (ABSL_PREDICT_FALSE(absl::IsInternal(status))) {
    NoteCheckFailed(&failure->status);
  }
  failure->op = op;
  failure->op_sequence = sequence == 0 ? op_sequence_ : sequence;
  if (const auto forward = status.GetPayload(kForwardOpPayload)) {
    static_cast<void>(
        absl::SimpleAtoi(std::string(*forward), &failure->forward_op_sequence));
  }
  if (unreported_ == nullptr) unreported_ = failure;
  return failure;
}

void Executor::NoteCheckFailed(absl::Status* status) {
  const absl::optional<absl::Cord> stack =
      status->GetPayload(kCheckFailedPayload);
  if (!stack.has_value()) return;
  ++checks_failed_;
  const std::string bytes(*stack);
  std::vector<void*> frames(bytes.size() / sizeof(void*));
  if (!frames.empty()) std::memcpy(frames.data(), bytes.data(), bytes.size());
  last_check_failed_ = std::string(status->message());
  if (!frames.empty()) {
    absl::StrAppend(&last_check_failed_, "; stack: ", StackText(frames));
  }
  status->ErasePayload(kCheckFailedPayload);
}

void Executor::ReportFailure(OpFailure& failure, v1::Status* status) {
  absl::Status origin = failure.status;
  SetErrorOrigin({failure.op, failure.op_sequence, failure.forward_op_sequence},
                 &origin);
  StatusToProto(origin, status);
  store_.Reported(failure);
  if (unreported_.get() == &failure) unreported_ = nullptr;
}

absl::Status Executor::ApplyOp(const v1::OpCall& call) {
  runner_.set_client_op(++op_sequence_);
  if (call.op() >= static_cast<uint32_t>(kNumOps)) {
    return ProtocolError(absl::StrCat("unknown op id ", call.op()));
  }
  const OpSchema& schema = GetOp(static_cast<OpId>(call.op()));
  if (call.inplace() || schema.has(kMutates)) NoteWriter();
  stop_.Begin(op_sequence_);
  const int promised = call.inplace() ? 0 : schema.num_outputs;
  if (promised > 0) {
    absl::Status s = Promise(call.outputs(), promised);
    if (!s.ok()) return s;
  }
  if (call.inputs_size() > kMaxTensorsOfCall) {
    return ProtocolError(absl::StrCat("an op takes at most ", kMaxTensorsOfCall,
                                      " tensors. Got ", call.inputs_size()));
  }
  if (cancelled(op_sequence_)) {
    DropOp(call, schema);
    return absl::OkStatus();
  }
  Inputs inputs;
  FailurePtr inherited;
  for (uint64_t handle : call.inputs()) {
    if (handle == 0) {
      inputs.emplace_back();
      continue;
    }
    absl::StatusOr<Value> input = Resolve(handle, &inherited);
    if (!input.ok()) return input.status();
    inputs.push_back(*std::move(input));
  }
  if (ABSL_PREDICT_FALSE(full()) && inherited == nullptr &&
      (promised > 0 || call.record())) {
    inherited = FullFailure(schema.name);
  }
  if (call.device() >= kMaxDevices) {
    return ProtocolError(absl::StrCat("a device's number must be below ",
                                      kMaxDevices, ". Got ", call.device()));
  }
  absl::Status status;
  if (inherited == nullptr) {
    try {
      status = RunAndFile(call, inputs);
    } catch (...) {
      status = CaughtStatus(schema.name);
    }
    if (status.ok()) return absl::OkStatus();
  }
  if (inherited == nullptr) {
    // It was stopped on its way.
    inherited = absl::IsCancelled(status) && cancelled(op_sequence_)
                    ? DroppedFailure(schema.name, op_sequence_)
                    : NewFailure(status, schema.name);
  }
  Spoil(call, schema, inherited);
  return absl::OkStatus();
}

void Executor::Spoil(const v1::OpCall& call, const OpSchema& schema,
                     const FailurePtr& failure) {
  const int promised = call.inplace() ? 0 : schema.num_outputs;
  for (int i = 0; i < promised; ++i) {
    store_.PutFailure(call.outputs() + i, failure);
  }
  if (call.inplace() && call.inputs_size() > 0 && call.inputs(0) != 0) {
    store_.MarkFailed(call.inputs(0), failure);
  }
  if (schema.has(kMutates)) {
    for (uint64_t handle : call.inputs()) {
      if (handle != 0) store_.MarkFailed(handle, failure);
    }
  }
}

absl::Status Executor::RunAndFile(const v1::OpCall& call,
                                  const Inputs& inputs) {
  const OpSchema& schema = GetOp(static_cast<OpId>(call.op()));
  Attrs attrs(&schema);
  absl::Status status = AttrsFromProto(call.attrs(), &attrs);
  if (call.device() != 0) attrs.set_device(static_cast<int>(call.device()));
  Values outputs;
  if (status.ok()) status = RunOp(call, attrs, inputs, &outputs);
  if (!status.ok()) return status;
  const int promised = call.inplace() ? 0 : schema.num_outputs;
  for (int i = 0; i < promised; ++i) {
    store_.Put(call.outputs() + i, std::move(outputs[i]));
    // Detached tensors have a history of their own.
    if (schema.has(kView) && schema.id != OpId::detach &&
        schema.id != OpId::variable_data) {
      NoteView(call.inputs(0), call.outputs() + i);
    }
  }
  if (call.inplace() && outputs[0] != inputs[0]) {
    return NoteWrite(call.inputs(0), std::move(outputs[0]));
  }
  return absl::OkStatus();
}

absl::Status Executor::RunOp(const v1::OpCall& call, const Attrs& attrs,
                             const Inputs& inputs, Values* outputs) {
  const OpSchema& schema = attrs.schema();
  if (call.inplace() ? !(schema.has(kInplace) || schema.has(kInplaceOnly))
                     : schema.has(kInplaceOnly)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[", schema.name, "] there is no ",
        call.inplace() ? "in-place" : "out-of-place", " form of this op"));
  }
  // Without a target inference says what is missing.
  if (call.inplace() && call.record() && !inputs.empty() && inputs[0]) {
    absl::Status s = CheckWritable(call.inputs(0));
    if (!s.ok()) {
      return absl::Status(s.code(),
                          absl::StrCat("[", schema.name, "_] ", s.message()));
    }
  }
  if (ABSL_PREDICT_FALSE(pack_code_ != 0)) {
    const uint64_t code = std::exchange(pack_code_, 0);
    if (pack_op_ == op_sequence_) runner_.set_pack(code);
  }
  if (!call.has_random()) {
    return runner_.Run(attrs, inputs, call.record(), call.inplace(), outputs);
  }
  const PhiloxState own = runner_.random();
  runner_.SetRandom({call.random().seed(), call.random().offset()});
  absl::Status status =
      runner_.Run(attrs, inputs, call.record(), call.inplace(), outputs);
  runner_.SetRandom(own);
  return status;
}

absl::Status Executor::ApplySetRequiresGrad(
    const v1::SetRequiresGrad& request) {
  FailurePtr failure;
  absl::StatusOr<Value> tensor = Resolve(request.handle(), &failure);
  if (!tensor.ok()) return tensor.status();
  if (failure != nullptr) return absl::OkStatus();
  absl::Status status;
  if (!(*tensor)->is_leaf()) {
    status = absl::FailedPreconditionError(
        "[requires_grad_] you can only change requires_grad flags of leaf "
        "variables. Use detach()");
  } else if (request.requires_grad() &&
             !IsDifferentiable((*tensor)->spec().dtype)) {
    status = absl::InvalidArgumentError(absl::StrCat(
        "[requires_grad_] only Tensors of floating point dtype can require "
        "gradients. Got ",
        (*tensor)->spec().ToString()));
  } else {
    (*tensor)->SetLeafRequiresGrad(request.requires_grad());
    const TensorStore::Entry* entry = store_.Find(request.handle());
    if (entry->history && !entry->is_view) {
      entry->history->SetLeaf((*tensor)->GradientEdge());
    }
    return absl::OkStatus();
  }
  store_.MarkFailed(request.handle(), NewFailure(status, "requires_grad_"));
  return absl::OkStatus();
}

absl::StatusOr<v1::Block> Executor::AllocateBlock(uint64_t bytes) {
  const HeapMeter::Beside beside(&heap_);
  absl::StatusOr<MemoryBlock*> block =
      staging_ ? staging_->memory().Allocate(bytes, HostStaging::kHost)
               : memory_.Allocate(bytes, options_.stream);
  if (!block.ok()) return block.status();
  v1::Block reply;
  reply.mutable_place()->set_segment((*block)->segment);
  reply.mutable_place()->set_offset((*block)->offset);
  reply.mutable_place()->set_bytes((*block)->bytes);
  std::lock_guard<std::mutex> lock(blocks_mutex_);
  reply.set_id(next_block_);
  blocks_[next_block_++] = *block;
  return reply;
}

absl::StatusOr<MemorySegment> Executor::FindSegment(uint64_t id) const {
  return (staging_ ? staging_->memory() : memory_).FindSegment(id);
}

void Executor::DropHandles() {
  reads_.clear();  // nobody asks for them any more
  while (!backwards_.empty()) backwards_.pop_back();  // inner ones first
  store_.Clear();
  shared_->ReleaseAll(this);
  client_life_ = std::make_shared<int>();
  unreported_ = nullptr;
  full_failure_ = nullptr;
  cancelled_ = 0;
  writer_.store(0, std::memory_order_relaxed);
  dropped_.clear();
  cancelled_gradients_.clear();
  profiling_ = false;
  profile_.reset();
  op_sequence_ = 0;  // a new client counts from 1
  stop_.Reset();
  parts_.clear();
  {
    std::lock_guard<std::mutex> lock(blocks_mutex_);
    CachingAllocator& memory = staging_ ? staging_->memory() : memory_;
    for (const auto& [id, block] : blocks_) memory.Free(block);
    blocks_.clear();
  }
}

}  // namespace holdfast
