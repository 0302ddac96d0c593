// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionCore: memory of GPUs that this process and the daemon see both.
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/gpu_driver.h"
#include "client/session_core.h"
#include "client/wire_spec.h"
#include "ops/place_op.h"

namespace holdfast::client {
namespace {

// What looks at a tensor's memory keeps the tensor, and the memory open.
struct Exported {
  std::shared_ptr<DeviceMapping> mapping;
  Tensor tensor;
};

absl::Status NotShared(absl::string_view why) {
  return absl::UnimplementedError(
      absl::StrCat("[from_dlpack] the daemon cannot open the memory: ", why));
}

// Whether the daemon's refusal is about this memory alone, which the host can
// still copy.
bool Refused(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsInternal(status) ||
         absl::IsNotFound(status) || absl::IsUnimplemented(status);
}

}  // namespace

absl::StatusOr<int> SessionCore::OrdinalOf(int device) {
  const int place = DevicePlace(device);
  if (!local_ || place >= hello_.gpus_size()) return place;
  return client::OrdinalOf(hello_.gpus(place), place);
}

absl::StatusOr<int> SessionCore::OrdinalOfMemory(const void* address) {
  if (const auto mapping = FindMapping(address)) return mapping->ordinal;
  if (PlainMemory()) return 0;
  const absl::StatusOr<const GpuDriver*> driver = GpuDriver::Get();
  if (!driver.ok()) return driver.status();
  return (*driver)->OrdinalOfMemory(address);
}

absl::StatusOr<DeviceArray> SessionCore::ExportMemory(
    const Tensor& tensor, const std::function<bool()>& interrupted) {
  if (!usable()) return Unusable();
  absl::Status status = CheckOwner("dlpack", tensor);
  if (status.ok()) status = Settle(tensor, interrupted);
  if (!status.ok()) return status;
  if (!local_ || hello_.gpus().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[dlpack] memory of a GPU can be shared by a daemon of this machine "
        "that is connected over shared memory. Got a session over ",
        transport_, " to ", hello_.server(), " on ", hello_.device(),
        ". Use .cpu() or .numpy(), which copy"));
  }
  // Before the daemon answers: from then on others may write.
  tensor->storage()->memory().shared = true;
  auto read = std::make_unique<PendingRead>();
  read->export_memory = true;
  absl::StatusOr<uint64_t> id =
      SendRead(std::move(read), tensor->handle(), /*place=*/false);
  if (!id.ok()) return id.status();
  absl::StatusOr<ReadValue> value = WaitRead(*id, interrupted);
  if (!value.ok()) return value.status();
  wire::ExportedMemory memory;
  DeviceArray array;
  if (memory.ParseFromArray(value->data,
                            static_cast<int>(value->spec.nbytes()))) {
    array.spec = SpecFromWire(memory.spec());
  }
  const TensorSpec& want = tensor->spec();
  if (static_cast<int>(memory.gpu()) >= hello_.gpus_size() ||
      array.spec.dtype != want.dtype || array.spec.shape != want.shape ||
      !CheckFits(array.spec, memory.bytes()).ok() ||
      memory.offset() > memory.segment_bytes() ||
      memory.bytes() > memory.segment_bytes() - memory.offset()) {
    return absl::InternalError(absl::StrCat(
        "[dlpack] the daemon's answer must fit the tensor. Got ",
        memory.spec().ShortDebugString(), " for ", want.ToString(), "."));
  }
  absl::StatusOr<std::shared_ptr<DeviceMapping>> mapping =
      mappings_.Open(hello_.gpus(memory.gpu()), memory, hello_.session_token());
  if (!mapping.ok()) return mapping.status();
  array.data = (*mapping)->base + memory.offset();
  array.ordinal = (*mapping)->ordinal;
  array.owner =
      std::make_shared<Exported>(Exported{*std::move(mapping), tensor});
  return array;
}

absl::Status SessionCore::FindForeign(const DeviceArray& array,
                                      wire::ForeignMemory* foreign,
                                      int* device) const {
  if (!local_ || hello_.gpus().empty()) {
    return NotShared("it is on another machine, or has no GPU");
  }
  const auto at = static_cast<const char*>(array.data) +
                  array.spec.offset * ItemSize(array.spec.dtype);
  std::string bus_id;
  if (const std::shared_ptr<DeviceMapping> mapping = FindMapping(at)) {
    foreign->set_offset(at - mapping->base);
    if (mapping->session == hello_.session_token()) {
      foreign->set_segment(mapping->segment);
      *device = 1 + static_cast<int>(mapping->place);
      return absl::OkStatus();
    }
    if (mapping->gpu.handles() != wire::Gpu::FILE) {
      return NotShared("it is another daemon's or session's");
    }
    foreign->set_handle(mapping->handle);
    bus_id = mapping->gpu.bus_id();
  } else {
    if (PlainMemory()) return NotShared("it is no daemon's");
    const absl::StatusOr<const GpuDriver*> driver = GpuDriver::Get();
    if (!driver.ok()) return driver.status();
    const auto allocation = (*driver)->Share(array.ordinal, at);
    if (!allocation.ok()) return NotShared(allocation.status().message());
    const auto found = (*driver)->BusIdOf(array.ordinal);
    if (!found.ok()) return found.status();
    foreign->set_offset(at - static_cast<const char*>(allocation->base));
    foreign->set_handle(allocation->handle);
    bus_id = *found;
  }
  for (int place = 0; place < hello_.gpus_size(); ++place) {
    if (!absl::EqualsIgnoreCase(hello_.gpus(place).bus_id(), bus_id)) continue;
    *device = 1 + place;
    return absl::OkStatus();
  }
  return NotShared(absl::StrCat("it has no GPU at ", bus_id));
}

absl::StatusOr<Tensor> SessionCore::CopyMemory(
    const DeviceArray& array, const std::function<bool()>& interrupted) {
  if (!usable()) return Unusable();
  absl::Status status = CheckShape(array.spec.dtype, array.spec.shape);
  if (!status.ok()) return status;
  wire::Put put;
  int device = 0;
  status = FindForeign(array, put.mutable_foreign(), &device);
  if (!status.ok()) return status;
  for (int64_t stride : array.spec.strides) {
    put.mutable_foreign()->add_strides(stride);
  }
  TensorSpec spec = ContiguousSpec(array.spec.dtype, array.spec.shape);
  spec.device = static_cast<int8_t>(device);
  absl::StatusOr<Tensor> copy =
      SendPut(std::move(put), std::move(spec), ProfileBegin());
  if (!copy.ok()) return copy;
  auto read = std::make_unique<PendingRead>();
  read->spec_only = true;
  read->complete = true;
  read->spec = (*copy)->spec();
  absl::StatusOr<uint64_t> id =
      SendRead(std::move(read), (*copy)->handle(), /*place=*/false);
  if (!id.ok()) return id.status();
  status = WaitRead(*id, interrupted).status();
  if (status.ok()) return copy;
  return Refused(status) ? NotShared(status.message()) : status;
}

absl::Status SessionCore::ReadMemory(const DeviceArray& array, size_t bytes,
                                     void* host) {
  const std::shared_ptr<DeviceMapping> mapping = FindMapping(array.data);
  if (mapping == nullptr ? PlainMemory()
                         : mapping->gpu.handles() == wire::Gpu::FILE) {
    std::memcpy(host, array.data, bytes);
    return absl::OkStatus();
  }
  const absl::StatusOr<const GpuDriver*> driver = GpuDriver::Get();
  if (!driver.ok()) return driver.status();
  return (*driver)->CopyToHost(array.ordinal, host, array.data, bytes);
}

absl::Status SessionCore::AwaitProducer(int ordinal,
                                        std::optional<uintptr_t> stream) {
  if (PlainMemory()) return absl::OkStatus();
  const absl::StatusOr<const GpuDriver*> driver = GpuDriver::Get();
  if (!driver.ok()) return driver.status();
  return stream.has_value() ? (*driver)->Synchronize(ordinal, *stream)
                            : (*driver)->SynchronizeAll(ordinal);
}

}  // namespace holdfast::client
