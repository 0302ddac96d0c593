// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// OpRunner: on which device an op runs, and tensors that come from another one.
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "ops/place_op.h"
#include "server/exec/op_runner.h"

namespace holdfast {
absl::StatusOr<RefPtr<Tensor>> OpRunner::NewTensorIn(
    TensorSpec spec, CachingAllocator* allocator, StreamId owner) {
  absl::StatusOr<MemoryBlock*> block =
      allocator->Allocate(spec.nbytes(), owner);
  if (!block.ok()) return block.status();
  return MakeRef<Tensor>(std::move(spec), MakeRef<Storage>(allocator, *block));
}

absl::StatusOr<RefPtr<Tensor>> OpRunner::NewTensor(TensorSpec spec) {
  absl::StatusOr<SessionDevice*> at = devices_->Find(spec.device);
  if (!at.ok()) return at.status();
  return NewTensorIn(std::move(spec), (*at)->memory, (*at)->stream);
}

absl::StatusOr<SessionDevice*> OpRunner::FindPlace(
    const Attrs& attrs, absl::Span<const Value> inputs, bool inplace,
    int* device) {
  if (ABSL_PREDICT_TRUE(!devices_->several() && !inputs.empty())) {
    return &devices_->home();
  }
  absl::InlinedVector<const TensorSpec*, 4> specs;
  for (const Value& input : inputs) {
    specs.push_back(input ? &input->spec() : nullptr);
  }
  if (absl::Status s = PlaceOp(attrs, specs, inplace, device); !s.ok()) {
    return s;
  }
  return devices_->Find(*device);
}

absl::Status OpRunner::AwaitReaders(const SessionDevice& place,
                                    absl::Span<const Value> inputs,
                                    bool writes) const {
  if (!writes && !over_first_) return absl::OkStatus();
  for (const Value& input : inputs) {
    // One that lies elsewhere is only read, and its stream known there.
    if (!input || DevicePlace(input->spec().device) != place.place()) continue;
    const StreamId reader = AsTensor(input)->storage()->TakeReader();
    if (reader == 0) continue;
    absl::Status s = place.device->Order(reader, place.stream);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

void OpRunner::JoinShared(const SessionDevice& place, Storage* storage) {
  auto& streams = storage->sharing()->streams;
  if (storage->read_only() != nullptr) {
    // It was complete when it was published, and is only read.
    if (!absl::c_linear_search(streams, place.stream)) {
      streams.push_back(place.stream);
    }
    return;
  }
  for (const StreamId other : streams) {
    if (other == place.stream) continue;
    place.device->WaitPoint(place.device->RecordPoint(other));
  }
  streams = {place.stream};
}

absl::Status OpRunner::Join(const Value& tensor) {
  Storage* const storage = AsTensor(tensor)->storage().get();
  if (storage->sharing() == nullptr) return absl::OkStatus();
  absl::StatusOr<SessionDevice*> at = devices_->Find(tensor->spec().device);
  if (!at.ok()) return at.status();
  if ((*at)->asynchronous) JoinShared(**at, storage);
  return absl::OkStatus();
}

absl::StatusOr<RefPtr<Tensor>> OpRunner::Copy(const Tensor& tensor,
                                              CachingAllocator* allocator,
                                              StreamId owner) {
  absl::StatusOr<SessionDevice*> at = devices_->Find(tensor.spec().device);
  if (!at.ok()) return at.status();
  Storage* const storage = tensor.storage().get();
  if ((*at)->asynchronous && storage->sharing() != nullptr) {
    JoinShared(**at, storage);
  }
  Attrs clone(&GetOp(OpId::clone));
  absl::StatusOr<RefPtr<Tensor>> copy =
      NewTensorIn(ContiguousLike(tensor.spec()), allocator, owner);
  if (!copy.ok()) return copy.status();
  const TensorView from = tensor.view(), to = (*copy)->view();
  absl::Status s =
      (*at)->device->Launch((*at)->stream, {}, clone, {&from, 1}, {&to, 1});
  if (!s.ok()) return s;
  return copy;
}

absl::StatusOr<RefPtr<Tensor>> OpRunner::Move(const Tensor& tensor,
                                              int device) {
  absl::StatusOr<SessionDevice*> from = devices_->Find(tensor.spec().device);
  if (!from.ok()) return from.status();
  absl::StatusOr<SessionDevice*> to = devices_->Find(device);
  if (!to.ok()) return to.status();
  if ((*from)->asynchronous && tensor.storage()->sharing() != nullptr) {
    JoinShared(**from, tensor.storage().get());
  }
  RefPtr<Tensor> whole;  // until the source's stream has passed the copy
  const Tensor* source = &tensor;
  if (!tensor.spec().contiguous()) {
    absl::StatusOr<RefPtr<Tensor>> made =
        Copy(tensor, (*from)->memory, (*from)->stream);
    if (!made.ok()) return made.status();
    whole = *std::move(made);
    source = whole.get();
  }
  TensorSpec spec = ContiguousLike(tensor.spec());
  spec.device = static_cast<int8_t>(device);
  absl::StatusOr<RefPtr<Tensor>> moved =
      NewTensorIn(std::move(spec), (*to)->memory, (*to)->stream);
  if (!moved.ok()) return moved.status();
  absl::Status s = (*to)->device->CopyFrom(
      (*to)->stream, (*moved)->data(), (*from)->device, (*from)->stream,
      source->data(), source->spec().nbytes());
  if (!s.ok()) return s;
  if (const Storage::Integers* known = tensor.storage()->integers()) {
    (*moved)->storage()->set_integers(
        std::make_unique<Storage::Integers>(*known));
  }
  return moved;
}

absl::StatusOr<Value> OpRunner::AtHome(const Value& tensor) {
  constexpr int kFirst = 1;
  if (ABSL_PREDICT_TRUE(DevicePlace(tensor->spec().device) == 0)) return tensor;
  absl::StatusOr<RefPtr<Tensor>> moved = Move(*AsTensor(tensor), kFirst);
  if (!moved.ok()) return moved.status();
  return Value(*std::move(moved));
}

absl::Status OpRunner::Synchronize(const Value& tensor) {
  absl::StatusOr<SessionDevice*> at = devices_->Find(tensor->spec().device);
  if (!at.ok()) return at.status();
  return (*at)->device->Synchronize((*at)->stream);
}

}  // namespace holdfast
