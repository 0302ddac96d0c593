// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionCore: what makes and writes tensors: ops and puts.
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "client/export_hold.h"
#include "client/interrupt.h"
#include "client/op_cost.h"
#include "client/session_core.h"
#include "ops/infer.h"
#include "ops/infer_rule.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "ops/place_op.h"
#include "proto/version.h"

namespace holdfast::client {
namespace {

void CountWrite(StorageState* storage) {
  ++storage->version();
  storage->memory().writes.fetch_add(1, std::memory_order_relaxed);
}

// Of a tensor in fresh memory.
void NoteStorageBytes(const TensorState& tensor) {
  if (!tensor.pending()) tensor.storage()->bytes = tensor.spec().nbytes();
}

// A view by strides may only show its storage. Where its size is not known
// here, the daemon says so.
absl::Status CheckInside(const TensorSpec& view, const Tensor& input) {
  const int64_t bytes = input->storage()->memory().bytes;
  if (bytes < 0 || CheckFits(view, bytes).ok()) return absl::OkStatus();
  int64_t needed = view.offset + 1;
  for (int i = 0; i < view.rank(); ++i) {
    needed += (view.shape[i] - 1) * view.strides[i];
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "[as_strided] setStorage: sizes ", ShapeString(view.shape), ", strides ",
      ShapeString(view.strides), ", storage offset ", view.offset,
      ", and itemsize ", ItemSize(view.dtype), " requiring a storage size of ",
      needed * ItemSize(view.dtype), " are out of bounds for storage of size ",
      bytes, ". Got ", input->spec().ToString(), "."));
}

}  // namespace

// ---- ops

absl::Status SessionCore::Apply(const Attrs& attrs,
                                absl::Span<const Tensor> inputs, bool inplace,
                                bool record, absl::Span<Tensor> outputs,
                                RandomStream* random,
                                const std::shared_ptr<UserCode>* unpack) {
  if (ABSL_PREDICT_FALSE(!usable())) return Unusable();
  if (ABSL_PREDICT_FALSE(too_far_ahead())) {
    absl::Status room = AwaitRoom([] { return InterruptPending(false); });
    if (!room.ok()) return room;
  }
  const int64_t begin_ns = ProfileBegin();
  const OpSchema& schema = attrs.schema();
  if (absl::Status few = CheckCount(schema.name, inputs.size());
      ABSL_PREDICT_FALSE(!few.ok())) {
    return few;
  }
  absl::InlinedVector<const TensorSpec*, 6> specs(inputs.size());
  bool exported = false;
  bool guarded = false;    // published or of inference mode
  bool inference = false;  // the latter
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    absl::Status owner = CheckOwner(schema.name, inputs[i]);
    if (ABSL_PREDICT_FALSE(!owner.ok())) return owner;
    if (ABSL_PREDICT_FALSE(inputs[i]->pending())) {
      absl::Status settled = Settle(inputs[i], nullptr);
      if (!settled.ok()) return settled;
    }
    specs[i] = &inputs[i]->spec();
    exported |= inputs[i]->storage()->exported();
    const StorageState& memory = inputs[i]->storage()->memory();
    inference |= memory.inference;
    guarded |= memory.read_only != nullptr || memory.inference;
  }
  if (ABSL_PREDICT_FALSE(guarded && (inplace || schema.has(kMutates)))) {
    absl::Status writable = CheckWritable(schema, inputs);
    if (!writable.ok()) return writable;
  }
  if (ABSL_PREDICT_FALSE(inference && record)) {
    absl::Status saved = CheckSaved(schema, inputs);
    if (!saved.ok()) return saved;
  }
  OutputSpecs inferred;
  absl::Status status = InferOp(attrs, specs, inplace, &inferred);
  if (ABSL_PREDICT_FALSE(!status.ok())) return status;
  if (order_ && !inplace) KeepOrder(attrs, specs, &inferred);
  if (ABSL_PREDICT_FALSE(!inferred.empty() && inferred[0].spec.device > 0)) {
    status = CheckDevice(schema.name, inferred[0].spec.device);
    if (!status.ok()) return status;
  }
  if (ABSL_PREDICT_FALSE(schema.id == OpId::as_strided)) {
    status = CheckInside(inferred[0].spec, inputs[0]);
    if (!status.ok()) return status;
  }
  const size_t expected = inplace ? 1 : inferred.size();
  if (ABSL_PREDICT_FALSE(outputs.size() != expected)) {
    return absl::InternalError(
        absl::StrCat("[", schema.name, "] the call must take ", expected,
                     " outputs. Got ", outputs.size(), "."));
  }
  const uint32_t op = op_ids_[static_cast<int>(schema.id)];
  if (ABSL_PREDICT_FALSE(op == kNoSuchOp)) {
    return absl::UnimplementedError(
        absl::StrCat("[", schema.name, "] the daemon must know the op. Got ",
                     hello_.server(), ", which lacks ", schema.name,
                     schema.signature, " of this client (protocol 1.",
                     schema.since, "). Use the same version on both sides."));
  }
  if (ABSL_PREDICT_FALSE(inplace && !inputs[0])) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[", schema.name, "_] the first argument must be a tensor."));
  }
  if (ABSL_PREDICT_FALSE(random != nullptr && !schema.has(kRandom))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[", schema.name, "] the op draws no random numbers. Got a stream."));
  }
  if (ABSL_PREDICT_FALSE(random != nullptr)) {
    absl::Status known = KnowsRandomState();
    if (!known.ok()) return known;
  }
  const uint64_t cost = CostOf(cost_kinds_[static_cast<int>(schema.id)], specs,
                               inplace            ? specs[0]
                               : inferred.empty() ? nullptr
                                                  : &inferred[0].spec);
  absl::InlinedVector<Tensor, 2> made;
  std::shared_ptr<Session> self =
      !inputs.empty() && inputs[0] ? inputs[0]->session() : Self();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    bool needs_grad = false;
    if (inplace && record && inputs[0]->requires_grad) {
      status = CheckNotLeaf(absl::StrCat(schema.name, "_"), inputs[0]);
      if (ABSL_PREDICT_FALSE(!status.ok())) return status;
    }
    if (record && !schema.has(kNoGrad)) {
      for (const Tensor& input : inputs) {
        needs_grad |= input && input->NeedsGrad();
      }
    }
    if (ABSL_PREDICT_FALSE(inplace && record && inputs[0]->made_in_inference &&
                           !InferenceMode())) {
      return absl::FailedPreconditionError(absl::StrCat(
          "[", schema.name,
          "_] A view was created in inference mode and is being modified "
          "inplace "
          "in normal mode. Given that this use case is ambiguous and "
          "error-prone, it is forbidden. You can clarify your code by moving "
          "both the view and the inplace either both inside the inference_mode "
          "block (if you don't want the inplace to be tracked) or both outside "
          "(if you want the inplace to be tracked). Got ",
          inputs[0]->spec().ToString(), "."));
    }
    if (ABSL_PREDICT_FALSE(inplace && needs_grad &&
                           inputs[0]->made_without_grad)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[", schema.name,
          "_] A view was created in no_grad mode and is being modified inplace "
          "with grad mode enabled. Given that this use case is ambiguous and "
          "error-prone, it is forbidden. You can clarify your code by moving "
          "both the view and the inplace either both inside the no_grad block "
          "(if you don't want the inplace to be tracked) or both outside (if "
          "you want the inplace to be tracked). Got ",
          inputs[0]->spec().ToString(), "."));
    }
    if (ABSL_PREDICT_FALSE(NumericsChanged())) {
      status = SendNumerics();
      if (!status.ok()) return status;
    }
    if (ABSL_PREDICT_FALSE(unpack != nullptr) && needs_grad) {
      wire::Command command;
      command.mutable_pack_saved()->set_code(Register(*unpack));
      status = SendCommand(command);
      if (!status.ok()) return status;
    }
    OpRequest request;
    request.op = op;
    request.inputs = inputs;
    request.attrs = &attrs;
    request.record = needs_grad;
    request.inplace = inplace;
    if (!inplace && !inferred.empty()) {
      request.outputs = next_handle_;
      next_handle_ += inferred.size();
    }
    if (ABSL_PREDICT_FALSE(random != nullptr)) {
      request.random = random->Take(RandomCounters(inferred[0].spec));
      request.has_random = true;
    }
    EncodedCommand command = writer_.EncodeOp(request, releases_);
    command.may_be_interrupted = true;
    status = Send(command);
    if (ABSL_PREDICT_FALSE(!status.ok())) return status;
    releases_.clear();
    CountOp();
    Note(ProfiledKind::kOp, op_sequence_.load(std::memory_order_relaxed),
         begin_ns, static_cast<int16_t>(schema.id), inplace);
    if (needs_grad) recorded_cost_ += cost;
    CountCost(cost);
    if (!inplace) {
      for (size_t i = 0; i < inferred.size(); ++i) {
        RefPtr<StorageState> storage;
        if (inferred[i].alias < 0) {
          storage = MakeRef<StorageState>();
        } else {
          const Tensor& base = inputs[inferred[i].alias];
          const bool data = schema.id == OpId::variable_data;
          storage = data || schema.id == OpId::detach
                        ? MakeRef<StorageState>(base->storage(), data)
                        : base->storage();
        }
        const bool last = i + 1 == inferred.size();
        made.push_back(MakeRef<TensorState>(
            last ? std::move(self) : self, request.outputs + i,
            std::move(inferred[i].spec), std::move(storage)));
        if (inferred[i].alias < 0) NoteStorageBytes(*made.back());
      }
    }
    if (needs_grad) RecordOutputs(attrs, inputs, made, inplace);
    if (ABSL_PREDICT_FALSE(unpack != nullptr) && needs_grad) {
      for (const Tensor& output : inplace ? inputs.first(1) : made) {
        if (output->node) output->node->unpack = *unpack;
      }
    }
    if (schema.has(kView) && !record) {
      made[0]->made_without_grad = !schema.has(kNoGrad);
      made[0]->made_in_inference =
          InferenceMode() && inputs[0]->NeedsGrad() && !schema.has(kNoGrad);
    }
    if (inplace) CountWrite(inputs[0]->storage().get());
    if (schema.has(kMutates)) {
      for (const Tensor& input : inputs) CountWrite(input->storage().get());
    }
    if (!inplace && TellsIntegers(schema.id) && made[0]->spec().rank() == 0 &&
        IsIntegral(made[0]->spec().dtype)) {
      FollowIntegers(attrs, inputs, made[0]);
    }
  }
  if (inplace) {
    outputs[0] = inputs[0];
  } else {
    std::move(made.begin(), made.end(), outputs.begin());
  }
  if (ABSL_PREDICT_FALSE(exported) && !schema.has(kView)) {
    return Synchronize(nullptr);
  }
  return absl::OkStatus();
}

absl::Status SessionCore::CheckDevice(absl::string_view op, int device) const {
  const int count = device_count();
  if (device <= count) return absl::OkStatus();
  if (count == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[", op, "] No CUDA GPUs are available: the daemon at ", address_,
        " computes on its CPU. Got ", DeviceText(device), "."));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "[", op, "] CUDA error: invalid device ordinal: the daemon at ", address_,
      " has ", count, count == 1 ? " GPU" : " GPUs", ", counted from 0. Got ",
      DeviceText(device),
      ". Start it with more: holdfastd --device=cuda:all."));
}

// ---- puts

absl::StatusOr<Tensor> SessionCore::SendPut(wire::Put put, TensorSpec spec,
                                            int64_t begin_ns) {
  wire::Command command;
  wire::TensorSpec* shape = put.mutable_spec();
  shape->set_dtype(static_cast<wire::DType>(spec.dtype));
  for (int64_t size : spec.shape) shape->add_shape(size);
  shape->set_device(spec.device);
  *command.mutable_put() = std::move(put);
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t handle = next_handle_++;
  command.mutable_put()->set_handle(handle);
  absl::Status status = SendCommand(command);
  if (!status.ok()) return status;
  CountOp();
  Note(ProfiledKind::kPut, op_sequence_.load(std::memory_order_relaxed),
       begin_ns);
  Tensor tensor = NewTensor(handle, std::move(spec));
  NoteStorageBytes(*tensor);
  return tensor;
}

absl::StatusOr<Tensor> SessionCore::Put(DType dtype,
                                        absl::Span<const int64_t> shape,
                                        const void* data, int device,
                                        BlockMarks* marks) {
  if (!usable()) return Unusable();
  const int64_t begin_ns = ProfileBegin();
  absl::Status status = CheckShape(dtype, shape);
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("[tensor] ", status.message()));
  }
  if (device != 0) status = CheckDevice("tensor", device);
  if (!status.ok()) return status;
  // An older daemon takes bytes on its first device alone.
  const bool straight = DevicePlace(device) == 0 ||
                        absl::c_linear_search(hello_.features(), kFeaturePlace);
  TensorSpec spec = ContiguousSpec(dtype, shape);
  spec.device = static_cast<int8_t>(straight ? device : 0);
  const uint64_t bytes = spec.nbytes();
  wire::Put put;
  if (bytes <= connection_->inline_limit()) {
    put.set_data(data, bytes);
    if (marks != nullptr) TakeMarks(put.data().data(), bytes, marks);
  } else {
    status = connection_->Upload(data, bytes, marks, &put);
    if (absl::IsResourceExhausted(status)) {
      // Uploads overtake the stream: what it frees before may be enough.
      absl::Status drained = Synchronize(nullptr);
      if (!drained.ok()) return drained;
      status = connection_->Upload(data, bytes, marks, &put);
    }
    if (!status.ok()) return status;
  }
  absl::StatusOr<Tensor> tensor =
      SendPut(std::move(put), std::move(spec), begin_ns);
  if (straight || !tensor.ok()) return tensor;
  Attrs move(&GetOp(OpId::to_device));
  move.Set(0, int64_t{device});
  Tensor moved;
  status = Apply(move, {&*tensor, 1}, /*inplace=*/false, /*record=*/false,
                 {&moved, 1});
  if (!status.ok()) return status;
  return moved;
}

absl::StatusOr<Tensor> SessionCore::Inherit(const Tensor& tensor) {
  // The parent may still have ops before it in its queue, or on their way.
  constexpr absl::Duration kRetry = absl::Milliseconds(5);
  const Session& parent = *tensor->session();
  if (tensor->pending()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[fork] a tensor's sizes must be known before the process forks. Got ",
        tensor->spec().ToString(), "; look at its shape before."));
  }
  wire::Put put;
  put.mutable_inherited()->set_session_token(parent.token());
  put.mutable_inherited()->set_handle(tensor->handle());
  put.mutable_inherited()->set_op_sequence(parent.last_op_sequence());
  while (true) {
    if (!usable()) return Unusable();
    absl::StatusOr<Tensor> copy =
        SendPut(put, ContiguousLike(tensor->spec()), 0);
    if (!copy.ok()) return copy;
    auto read = std::make_unique<PendingRead>();
    read->spec_only = true;
    read->spec = (*copy)->spec();
    absl::StatusOr<uint64_t> id =
        SendRead(std::move(read), (*copy)->handle(), /*place=*/false);
    if (!id.ok()) return id.status();
    const absl::Status status = WaitRead(*id, nullptr).status();
    if (status.ok()) return copy;
    if (!absl::IsUnavailable(status) || !usable()) return status;
    absl::SleepFor(kRetry);
  }
}

absl::StatusOr<std::pair<Tensor, ReadValue>> SessionCore::PutShared(
    DType dtype, absl::Span<const int64_t> shape) {
  if (!usable()) return Unusable();
  if (hello_.device_memory()) {
    return absl::UnimplementedError(
        "[tensor] the daemon's tensors are not in host memory.");
  }
  const int64_t begin_ns = ProfileBegin();
  absl::Status status = CheckShape(dtype, shape);
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("[tensor] ", status.message()));
  }
  TensorSpec spec = ContiguousSpec(dtype, shape);
  absl::StatusOr<MappedBlock> block =
      connection_->Allocate(std::max<uint64_t>(1, spec.nbytes()));
  if (!block.ok()) return block.status();
  wire::Put put;
  put.set_block(block->id);
  absl::StatusOr<Tensor> tensor = SendPut(std::move(put), spec, begin_ns);
  if (!tensor.ok()) return tensor.status();
  ReadValue value;
  value.spec = std::move(spec);
  value.data = block->memory.data;
  value.placed = true;
  value.owner = std::make_shared<ExportHold>(*tensor, &exports_,
                                             std::move(block->memory.owner));
  return std::make_pair(*std::move(tensor), std::move(value));
}

}  // namespace holdfast::client
