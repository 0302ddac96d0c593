// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: device memory that this session and the client's own process see
// both. What the client opens (CUDA IPC) it opens whole, for writing, and it
// may write at any time: only segments of this session, whose ops take that
// into account from then on (SessionDevice::guard). What it brings is copied.
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "ops/place_op.h"
#include "proto/convert.h"
#include "server/exec/executor.h"

namespace holdfast {
namespace {

// Memory of another process while the device reads it.
class Opened {
 public:
  Opened(Device* device, Device::OpenedMemory memory)
      : device_(device), memory_(memory) {}
  // Waits for the copy, which is done unless the session ends before.
  ~Opened() {
    device_->WaitPoint(copied_);
    device_->CloseMemory(memory_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  // A point of the device behind the copy.
  void set_copied(uint64_t point) { copied_ = point; }

 private:
  Device* const device_;
  const Device::OpenedMemory memory_;
  uint64_t copied_ = 0;
};

absl::Status Refuse(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("[dlpack] ", why));
}

}  // namespace

absl::Status Executor::ExportMemory(const Value& tensor,
                                    v1::ReadResult* result) {
  const TensorSpec& spec = tensor->spec();
  const Storage& storage = *AsTensor(tensor)->storage();
  if (!local_ || device_->handle_kind() == MemoryHandleKind::kNone) {
    return Refuse(absl::StrCat(
        "memory can be shared by a daemon on a GPU, with programs of its "
        "machine that are connected over shared memory. Got ",
        local_ ? "shm" : "grpc", ", --device=", device_->name(),
        ". Use .cpu() or .numpy()"));
  }
  absl::StatusOr<SessionDevice*> at = devices_.Find(spec.device);
  if (!at.ok()) return at.status();
  if (storage.allocator() != (*at)->memory || storage.read_only() != nullptr) {
    return Refuse(absl::StrCat(
        "the memory of the tensor is another session's or published, and who "
        "opens memory may write all of it: clone() it first. Got ",
        spec.ToString()));
  }
  if (absl::Status s = runner_.Join(tensor); !s.ok()) return s;
  const MemoryBlock& block = storage.block();
  absl::StatusOr<std::string> handle = (*at)->memory->Export(block.segment);
  if (!handle.ok()) return handle.status();
  absl::StatusOr<MemorySegment> segment =
      (*at)->memory->FindSegment(block.segment);
  if (!segment.ok()) return segment.status();
  const int place = DevicePlace(spec.device);
  if (place == 0) {
    runner_.set_guard(&guard_);
  } else {
    devices_.GuardFurther(place);
  }
  v1::ExportedMemory told;
  told.set_handle(*std::move(handle));
  told.set_segment(block.segment);
  told.set_segment_bytes(segment->bytes);
  told.set_offset(block.offset);
  told.set_bytes(block.bytes);
  told.set_gpu(place);
  SpecToProto(spec, told.mutable_spec());
  result->set_data(told.SerializeAsString());
  AwaitDevices(std::move(*result), tensor);
  return absl::OkStatus();
}

absl::StatusOr<Value> Executor::CopyForeign(const v1::ForeignMemory& from,
                                            TensorSpec spec) {
  if (!local_) return Refuse("only programs of this machine bring GPU memory");
  absl::StatusOr<SessionDevice*> at = devices_.Find(spec.device);
  if (!at.ok()) return at.status();
  Device* const device = (*at)->device;
  TensorSpec layout = spec;
  layout.strides.assign(from.strides().begin(), from.strides().end());
  if (absl::Status s = CheckFits(layout, std::numeric_limits<int64_t>::max());
      !s.ok()) {
    return s;
  }
  absl::StatusOr<RefPtr<Tensor>> made = runner_.NewTensor(std::move(spec));
  if (!made.ok() || layout.numel() == 0) return made;
  Device::OpenedMemory memory;
  std::shared_ptr<Opened> opened;
  if (from.source_case() == v1::ForeignMemory::kSegment) {
    absl::StatusOr<MemorySegment> own =
        (*at)->memory->FindSegment(from.segment());
    if (!own.ok()) return own.status();
    memory = {own->base, own->bytes};
  } else {
    absl::StatusOr<Device::OpenedMemory> found =
        device->OpenMemory(from.handle());
    if (!found.ok()) return found.status();
    opened = std::make_shared<Opened>(device, *found);
    memory = *found;
  }
  const uint64_t offset = from.offset();
  if (offset > memory.bytes || offset % ItemSize(layout.dtype) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[dlpack] the elements must begin at a multiple of their size inside "
        "the memory. Got offset ",
        offset, " of ", memory.bytes, " bytes, ", layout.ToString()));
  }
  absl::Status s =
      CheckFits(layout, static_cast<int64_t>(memory.bytes - offset));
  if (!s.ok()) return s;
  const Attrs clone(&GetOp(OpId::clone));
  const TensorView view = {static_cast<char*>(memory.base) + offset, &layout};
  const TensorView to = (*made)->view();
  s = device->Launch((*at)->stream, {}, clone, {&view, 1}, {&to, 1});
  if (opened != nullptr) {
    opened->set_copied(device->RecordPoint((*at)->stream));
  }
  if (!s.ok()) return s;
  if (opened != nullptr) {
    WaitingRead copy;
    copy.points = devices_.RecordPoints();
    copy.foreign = std::move(opened);
    reads_.push_back(std::move(copy));
  }
  return Value(*std::move(made));
}

}  // namespace holdfast
