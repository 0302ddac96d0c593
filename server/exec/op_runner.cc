// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/op_runner.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/grad_rule.h"
#include "autograd/tape.h"
#include "kernels/number_operand.h"
#include "kernels/op_time.h"
#include "ops/check.h"
#include "ops/complex.h"
#include "ops/infer_rule.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "ops/place_op.h"
#include "proto/profile_clock.h"
#include "server/exec/data_checks.h"
#include "server/exec/op_steps.h"
#include "server/exec/profile_buffer.h"

namespace holdfast {
namespace {

using Views = absl::InlinedVector<TensorView, 4>;
using Specs = absl::InlinedVector<const TensorSpec*, 4>;

std::atomic<int> running_kernel{-1};

void NoteKernel(int op) { running_kernel.store(op, std::memory_order_relaxed); }

// One writer: plain load and store suffice.
void Bump(std::atomic<uint64_t>& counter, uint64_t by) {
  counter.store(counter.load(std::memory_order_relaxed) + by,
                std::memory_order_relaxed);
}

// A number passed for an operand, as the rank-0 tensor kernels see.
struct ScalarOperand {
  alignas(16) char bytes[16];
  TensorSpec spec;

  // Kernels compute in the operands' compute type: so does the number.
  void Set(const AttrValue& value, DType dtype) {
    spec.dtype = ComputeType(dtype);
    spec.offset = kNumberOffset;
    switch (spec.dtype) {
      case DType::kBool:
        Store<uint8_t>(AttrAsDouble(value) != 0);
        break;
      case DType::kUInt8:
        Store<uint8_t>(static_cast<uint8_t>(AttrAsInt(value)));
        break;
      case DType::kInt32:
        Store<int32_t>(static_cast<int32_t>(AttrAsInt(value)));
        break;
      case DType::kInt64:
        Store<int64_t>(AttrAsInt(value));
        break;
      case DType::kFloat64:
        Store<double>(AttrAsDouble(value));
        break;
      case DType::kComplex64:
        Store<Complex<float>>(static_cast<float>(AttrAsDouble(value)));
        break;
      case DType::kComplex128:
        Store<Complex<double>>(AttrAsDouble(value));
        break;
      default:
        Store<float>(static_cast<float>(AttrAsDouble(value)));
        break;
    }
  }

 private:
  template <typename T>
  void Store(T value) {
    *reinterpret_cast<T*>(bytes) = value;
  }
};

// True when two elements of the tensor share memory (expanded dimensions).
bool SelfOverlaps(const TensorSpec& spec) {
  for (int i = 0; i < spec.rank(); ++i) {
    if (spec.strides[i] == 0 && spec.shape[i] > 1) return true;
  }
  return false;
}

// "add_": names of in-place forms, for messages.
const char* InplaceName(OpId op) {
  static const auto& names = *[] {
    auto* all = new std::vector<std::string>;
    for (const OpSchema& schema : AllOps()) all->push_back(schema.name + "_");
    return all;
  }();
  return names[static_cast<int>(op)].c_str();
}

bool AnyRequiresGrad(absl::Span<const Value> inputs) {
  for (const Value& input : inputs) {
    if (input && input->requires_grad()) return true;
  }
  return false;
}

// A published tensor is everybody's, and nobody's to write.
absl::Status CheckNotPublished(const OpSchema& op, const Value& value) {
  const std::string* name = AsTensor(value)->storage()->read_only();
  if (ABSL_PREDICT_TRUE(name == nullptr)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "[", op.name, op.has(kMutates) ? "" : "_", "] '", *name,
      "' is published, and its tensors are read-only: write to a clone() of "
      "them, or publish with writable=True. Got ",
      value->spec().ToString()));
}

Attrs Checked(Attrs attrs) {
  attrs.set_data_checked();
  return attrs;
}

// Nobody else sees this memory.
bool Exclusive(const Tensor& tensor) {
  const Storage& storage = *tensor.storage();
  return storage.unique() && storage.sharing() == nullptr;
}

// Of a failed call's tensors.
constexpr size_t kMostToldSpecs = 8;

// The same, which says more.
absl::Status WithText(const absl::Status& status, absl::string_view more) {
  absl::Status result(status.code(), absl::StrCat(status.message(), more));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& value) {
    result.SetPayload(type, value);
  });
  return result;
}

bool NoElements(absl::Span<const TensorView> views) {
  return std::all_of(views.begin(), views.end(), [](const TensorView& view) {
    return !view.present() || view.spec->numel() == 0;
  });
}

// No loop over a batch of nothing, however long. Verdicts on data are still the
// kernel's.
bool NothingToCompute(const OpSchema& schema,
                      absl::Span<const TensorView> inputs,
                      absl::Span<const TensorView> outputs) {
  if (ABSL_PREDICT_TRUE(outputs.empty() || outputs[0].spec->numel() != 0)) {
    return false;
  }
  return !schema.has(kMutates) && NoElements(outputs) &&
         (!schema.has(kChecksData) || NoElements(inputs));
}

// Whether an input must be out of the clients' reach while the op runs: its
// elements are looked at twice, first to check them or to count what they
// select.
bool MayNotChange(const OpSchema& schema, const TensorSpec& spec,
                  bool asynchronous) {
  // Other kernels than the CPU's check in a pass of its own.
  if (asynchronous && schema.has(kDataShape)) return true;
  return schema.has(kChecksData) && IsIntegral(spec.dtype) &&
         (asynchronous || !schema.has(kLoadsOnce));
}

}  // namespace

int RunningKernel() { return running_kernel.load(std::memory_order_relaxed); }

std::array<OpCounters, kNumOps>& AllOpCounters() {
  static auto& counters = *new std::array<OpCounters, kNumOps>();
  return counters;
}

absl::StatusOr<Values> OpRunner::Emit(const Attrs& attrs,
                                      absl::Span<const Value> inputs,
                                      bool record, bool inplace) {
  Values outputs;
  if (absl::Status s = Run(attrs, inputs, record, inplace, &outputs); !s.ok()) {
    return s;
  }
  return outputs;
}

absl::StatusOr<Values> OpRunner::EmitOver(const Attrs& attrs,
                                          absl::Span<const Value> inputs) {
  over_first_ = inputs[0]->unique() && Exclusive(*AsTensor(inputs[0]));
  absl::StatusOr<Values> outputs =
      Emit(attrs, inputs, /*record=*/false, /*inplace=*/false);
  over_first_ = false;
  return outputs;
}

Value OpRunner::Alias(const Value& value) {
  const Tensor& tensor = *AsTensor(value);
  return MakeRef<Tensor>(tensor.spec(), tensor.storage(), tensor.versions());
}

absl::StatusOr<bool> OpRunner::HasNaN(const Value& value) {
  if (IsIntegral(value->spec().dtype)) return false;
  Values nan, any;
  absl::Status s = Run(Attrs(&GetOp(OpId::isnan)), {&value, 1},
                       /*record=*/false, /*inplace=*/false, &nan);
  if (!s.ok()) return s;
  s = Run(Attrs(&GetOp(OpId::any)), nan, false, false, &any);
  if (!s.ok()) return s;
  bool found = false;
  absl::StatusOr<SessionDevice*> at = devices_->Find(value->spec().device);
  if (!at.ok()) return at.status();
  s = (*at)->device->CopyToHost((*at)->stream, &found, AsTensor(any[0])->data(),
                                sizeof(found));
  if (!s.ok()) return s;
  return found;
}

absl::Status OpRunner::Run(const Attrs& attrs, absl::Span<const Value> inputs,
                           bool record, bool inplace, Values* outputs) {
  if (ABSL_PREDICT_TRUE(profile_ == nullptr)) {
    return RunCaught(attrs, inputs, record, inplace, outputs);
  }
  const int64_t start = ProfileNow();
  absl::Status status = RunCaught(attrs, inputs, record, inplace, outputs);
  profile_->NoteOp(attrs.schema(), inputs, inplace, *outputs, start,
                   status.ok());
  return status;
}

absl::Status OpRunner::RunCaught(const Attrs& attrs,
                                 absl::Span<const Value> inputs, bool record,
                                 bool inplace, Values* outputs) {
  try {
    return RunOp(attrs, inputs, record, inplace, outputs);
  } catch (...) {
    NoteKernel(-1);
    outputs->clear();
    OpCounters& counters = CountersOf(attrs.schema().id);
    Bump(counters.calls, 1);
    Bump(counters.failures, 1);
    std::vector<std::string> specs;
    for (const Value& input : inputs) {
      if (specs.size() == kMostToldSpecs) {
        specs.push_back(absl::StrCat("and ", inputs.size() - specs.size()));
        break;
      }
      specs.push_back(input ? input->spec().ToString() : "None");
    }
    return WithText(CaughtStatus(attrs.schema().name),
                    absl::StrCat(". Got ", absl::StrJoin(specs, ", "),
                                 inplace ? ", in place" : ""));
  }
}

absl::Status OpRunner::RunOp(const Attrs& attrs, absl::Span<const Value> inputs,
                             bool record, bool inplace, Values* outputs) {
  const OpSchema& schema = attrs.schema();
  uint64_t pack = 0;
  if (ABSL_PREDICT_FALSE(pack_ != 0)) pack = std::exchange(pack_, 0);
  Specs specs;
  for (const Value& input : inputs) {
    specs.push_back(input ? &input->spec() : nullptr);
  }
  OutputSpecs output_specs;
  if (absl::Status s = InferOp(attrs, specs, inplace, &output_specs); !s.ok()) {
    return s;
  }
  const bool ordered =
      keep_order_ && !inplace && KeepOrder(attrs, specs, &output_specs);
  const bool on_tape =
      record && !schema.has(kNoGrad) && AnyRequiresGrad(inputs);
  if (inplace || schema.has(kMutates)) {
    if (absl::Status s = CheckInplace(attrs, inputs, record); !s.ok()) return s;
  }
  RefPtr<Node> node;
  if (on_tape && inplace && pack == 0) {
    absl::StatusOr<RefPtr<Node>> begun =
        BeginRecordInplace(attrs, inputs, *this);
    if (!begun.ok()) return begun.status();
    node = *std::move(begun);
  } else if (on_tape) {
    node = BeginRecord(attrs, inputs);
  }

  OpCounters& counters = CountersOf(schema.id);
  Bump(ops_run_, 1);
  const bool timed = ops_run() == next_timed_;
  std::chrono::steady_clock::time_point start;
  if (timed) start = std::chrono::steady_clock::now();
  absl::Status status =
      schema.has(kView) ? RunView(schema, output_specs, inputs, outputs)
                        : RunKernel(attrs, inputs, inplace,
                                    std::move(output_specs), ordered, outputs);
  if (ABSL_PREDICT_FALSE(timed)) {
    NoteDuration(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - start)
            .count(),
        &counters);
  }
  Bump(counters.calls, 1);
  if (!status.ok()) {
    Bump(counters.failures, 1);
    return status;
  }
  if (node) {
    node->op_sequence = client_op_;
    // The old variable keeps its history for whoever saved it.
    if (inplace) (*outputs)[0] = Alias(inputs[0]);
    EndRecord(node, *this, *outputs);
    if (ABSL_PREDICT_FALSE(pack != 0)) node->Pack(pack);
  }
  return absl::OkStatus();
}

void OpRunner::NoteDuration(int64_t nanoseconds, OpCounters* counters) {
  Bump(counters->nanoseconds, kTimedEvery * nanoseconds);
  int bucket = 0;
  while (bucket + 1 < kLatencyBuckets &&
         LatencyBound(bucket) < static_cast<uint64_t>(nanoseconds)) {
    ++bucket;
  }
  Bump(counters->latency[bucket], 1);
  // A fixed distance would time the same ops of a loop again and again. The
  // mean of 1, 3, ..., 2 * kTimedEvery - 1 is kTimedEvery.
  timing_random_ = timing_random_ * 6364136223846793005u + 1442695040888963407u;
  next_timed_ = ops_run() + 1 + 2 * ((timing_random_ >> 32) % kTimedEvery);
}

absl::Status OpRunner::RunView(const OpSchema& schema, const OutputSpecs& specs,
                               absl::Span<const Value> inputs,
                               Values* outputs) {
  const bool own_versions = schema.id == OpId::variable_data;
  for (const OutputSpec& out : specs) {
    const Tensor& base = *AsTensor(inputs[out.alias]);
    // Inference keeps views inside their input; as_strided may not.
    if (absl::Status s = CheckFits(out.spec, base.storage()->bytes());
        !s.ok()) {
      return s;
    }
    outputs->push_back(MakeRef<Tensor>(
        out.spec, base.storage(),
        own_versions ? MakeRef<VersionCounter>() : base.versions()));
  }
  return absl::OkStatus();
}

// What must hold before an op may write its inputs.
absl::Status OpRunner::CheckInplace(const Attrs& attrs,
                                    absl::Span<const Value> inputs,
                                    bool record) {
  const OpSchema& schema = attrs.schema();
  if (schema.has(kMutates)) {
    // Lists one after the other, all of one length.
    const size_t per_list =
        schema.num_lists > 0 ? inputs.size() / schema.num_lists : 1;
    for (size_t i = 0; per_list > 0 && i < inputs.size(); ++i) {
      const size_t slot = i / per_list;
      if (slot < schema.tensor_params.size() &&
          !schema.params[schema.tensor_params[slot]].mutated) {
        continue;
      }
      absl::Status s = CheckNotPublished(schema, inputs[i]);
      if (!s.ok()) return s;
    }
    for (const Value& input : inputs) {
      if (SelfOverlaps(input->spec())) {
        return absl::InvalidArgumentError(
            absl::StrCat("[", schema.name,
                         "] a written tensor must not overlap itself. Got ",
                         input->spec().ToString()));
      }
    }
    return absl::OkStatus();
  }
  const Tensor& target = *AsTensor(inputs[0]);
  absl::Status writable = CheckNotPublished(schema, inputs[0]);
  if (ABSL_PREDICT_FALSE(!writable.ok())) return writable;
  if (SelfOverlaps(target.spec())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[", schema.name,
        "_] unsupported operation: more than one element of the written-to "
        "tensor refers to a single memory location. Please clone() the tensor "
        "before performing the operation. Got ",
        target.spec().ToString(), " strides ",
        ShapeString(target.spec().strides)));
  }
  if (!record || !AnyRequiresGrad(inputs)) return absl::OkStatus();
  if (target.is_leaf() && target.requires_grad()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[", schema.name,
        "_] a leaf Variable that requires grad is being used in an in-place "
        "operation. Got input=",
        target.spec().ToString()));
  }
  return absl::OkStatus();
}

struct OpRunner::KernelInputs {
  Views views;
  absl::InlinedVector<ScalarOperand, 1> scalars;
  absl::InlinedVector<RefPtr<Tensor>, 1> copies;
};

absl::Status OpRunner::CompleteSpecs(const SessionDevice& place,
                                     const Attrs& attrs,
                                     const KernelInputs& inputs,
                                     OutputSpecs* specs) {
  absl::InlinedVector<int64_t*, 4> unknown;
  for (OutputSpec& out : *specs) {
    for (int64_t& size : out.spec.shape) {
      if (size == kUnknownSize) unknown.push_back(&size);
    }
  }
  absl::InlinedVector<int64_t, 4> sizes(unknown.size());
  NoteKernel(static_cast<int>(attrs.schema().id));
  absl::Status s = place.device->ComputeSizes(place.stream, attrs, inputs.views,
                                              absl::MakeSpan(sizes));
  NoteKernel(-1);
  if (!s.ok()) return s;
  for (size_t i = 0; i < unknown.size(); ++i) *unknown[i] = sizes[i];
  for (OutputSpec& out : *specs) {
    if (s = CheckShape(out.spec.dtype, out.spec.shape); !s.ok()) {
      return absl::Status(
          s.code(), absl::StrCat("[", attrs.schema().name, "] ", s.message()));
    }
    out.spec.strides = ContiguousStrides(out.spec.shape);
  }
  return absl::OkStatus();
}

absl::Status OpRunner::Stopped(const OpSchema& schema, bool inplace,
                               bool begun) const {
  const absl::Status why = stop_->why();
  const bool writes = inplace || schema.has(kMutates);
  return absl::Status(
      why.code(),
      absl::StrCat(
          "[", schema.name, inplace ? "_" : "", "] ", why.message(),
          begun && writes ? ". What it writes is partly written" : ""));
}

absl::Status OpRunner::RunKernel(const Attrs& attrs,
                                 absl::Span<const Value> inputs, bool inplace,
                                 OutputSpecs specs, bool ordered,
                                 Values* outputs) {
  const OpSchema& schema = attrs.schema();
  if (stop_ != nullptr && ABSL_PREDICT_FALSE(stop_->stopped())) {
    return Stopped(schema, inplace, /*begun=*/false);
  }
  if (ABSL_PREDICT_FALSE(schema.id == OpId::to_device) &&
      DevicePlace(specs[0].spec.device) !=
          DevicePlace(inputs[0]->spec().device)) {
    absl::StatusOr<RefPtr<Tensor>> moved =
        Move(*AsTensor(inputs[0]), specs[0].spec.device);
    if (moved.ok()) outputs->push_back(*std::move(moved));
    return moved.status();
  }
  int device = 0;
  absl::StatusOr<SessionDevice*> found =
      FindPlace(attrs, inputs, inplace, &device);
  if (!found.ok()) return found.status();
  const SessionDevice& place = **found;
  KernelInputs prepared;
  absl::Status status =
      Prepare(place, device, attrs, inputs, inplace, &prepared);
  if (status.ok()) {
    status = CheckSteps(schema, inputs, specs,
                        most_seconds_.load(std::memory_order_relaxed));
  }
  if (status.ok() && schema.has_any(kUnknownSizes)) {
    status = CompleteSpecs(place, attrs, prepared, &specs);
    if (!status.ok() && stop_ != nullptr && stop_->stopped()) {
      status = Stopped(schema, inplace, /*begun=*/false);
    }
  }
  if (!status.ok()) return status;
  Views views;
  if (inplace) {
    views.push_back(AsTensor(inputs[0])->view());
  } else {
    for (const OutputSpec& out : specs) {
      absl::StatusOr<RefPtr<Tensor>> tensor =
          over_first_ && out.spec == inputs[0]->spec()
              ? MakeRef<Tensor>(out.spec, AsTensor(inputs[0])->storage())
              : NewTensorIn(out.spec, place.memory, place.stream);
      if (!tensor.ok()) {
        outputs->clear();
        return absl::Status(
            tensor.status().code(),
            absl::StrCat("[", schema.name, "] ", tensor.status().message()));
      }
      views.push_back((*tensor)->view());
      outputs->push_back(*std::move(tensor));
    }
  }
  OrderedSpecs turned;
  if (ABSL_PREDICT_FALSE(ordered)) {
    ShowInOrder(absl::MakeSpan(prepared.views), absl::MakeSpan(views), &turned);
  }
  PhiloxState philox = philox_;
  if (schema.has(kRandom) && !views.empty()) {
    philox_.offset += RandomCounters(*views[0].spec);
  }
  if (ABSL_PREDICT_FALSE(place.asynchronous)) {
    status = AwaitReaders(place, inputs, inplace || schema.has(kMutates));
    if (!status.ok()) {
      outputs->clear();
      return status;
    }
  }
  const bool known =
      ABSL_PREDICT_FALSE(place.asynchronous && schema.has(kChecksData)) &&
      place.guard == nullptr &&  // else a client may have written them since
      DataKnownRight(attrs, inputs);
  if (ABSL_PREDICT_TRUE(!NothingToCompute(schema, prepared.views, views))) {
    NoteKernel(static_cast<int>(schema.id));
    const OpTime time(most_seconds_.load(std::memory_order_relaxed));
    status = place.device->Launch(place.stream, philox,
                                  known ? Checked(attrs) : attrs,
                                  prepared.views, views);
    NoteKernel(-1);
    if (ABSL_PREDICT_FALSE(!status.ok()) && stop_ != nullptr &&
        stop_->stopped()) {
      status = Stopped(schema, inplace, /*begun=*/true);
    }
  }
  if (ABSL_PREDICT_FALSE(place.asynchronous)) {
    NoteIntegers(attrs, inputs, inplace, status.ok(), *outputs);
  }
  if (!status.ok()) {
    outputs->clear();
    return status;
  }
  if (inplace) {
    AsTensor(inputs[0])->CountWrite(InplaceName(schema.id));
    outputs->push_back(inputs[0]);
  } else if (schema.has(kMutates)) {
    for (const Value& input : inputs) {
      // Lists the op only reads are bumped too: gradients and buffers of an
      // optimizer step are nobody's saved tensors.
      AsTensor(input)->CountWrite(schema.name.c_str());
    }
  }
  return absl::OkStatus();
}

absl::Status OpRunner::Prepare(const SessionDevice& place, int device,
                               const Attrs& attrs,
                               absl::Span<const Value> inputs, bool inplace,
                               KernelInputs* prepared) {
  const OpSchema& schema = attrs.schema();
  auto& [views, scalars, copies] = *prepared;
  scalars.reserve(inputs.size());  // views point into it
  const bool several = devices_->several();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) {
      const OpParam& param = schema.params[schema.tensor_params[i]];
      TensorView view;
      if (param.attr_slot >= 0 && attrs.IsSet(param.attr_slot) &&
          AttrIsNumber(attrs.Get(param.attr_slot))) {
        Specs specs;
        for (const Value& v : inputs) specs.push_back(v ? &v->spec() : nullptr);
        ScalarOperand& scalar = scalars.emplace_back();
        scalar.Set(attrs.Get(param.attr_slot), ResultType(attrs, specs));
        view = {scalar.bytes, &scalar.spec};
      }
      views.push_back(view);
      continue;
    }
    const Tensor& tensor = *AsTensor(inputs[i]);
    if (ABSL_PREDICT_FALSE(place.asynchronous &&
                           tensor.storage()->sharing() != nullptr)) {
      absl::Status s = Join(inputs[i]);
      if (!s.ok()) return s;
    }
    if (ABSL_PREDICT_FALSE(several && DevicePlace(tensor.spec().device) !=
                                          DevicePlace(device))) {
      absl::StatusOr<RefPtr<Tensor>> moved = Move(tensor, device);
      if (!moved.ok()) return moved.status();
      views.push_back((*moved)->view());
      copies.push_back(*std::move(moved));
      continue;
    }
    const bool index = place.guard != nullptr && !(inplace && i == 0) &&
                       MayNotChange(schema, tensor.spec(), place.asynchronous);
    const bool alias =
        inplace && i > 0 &&
        tensor.storage() == AsTensor(inputs[0])->storage() &&
        !(schema.has(kElementwise) && tensor.spec() == inputs[0]->spec());
    if (index || alias) {
      absl::StatusOr<RefPtr<Tensor>> copy =
          Copy(tensor, index ? place.guard : place.memory, place.stream);
      if (!copy.ok()) return copy.status();
      views.push_back((*copy)->view());
      copies.push_back(*std::move(copy));
      continue;
    }
    views.push_back(tensor.view());
  }
  return absl::OkStatus();
}

}  // namespace holdfast
