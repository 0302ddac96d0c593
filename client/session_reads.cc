// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionCore: reads, the only waits. One waiting thread at a time takes in
// events for all.
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/fork_guard.h"
#include "client/interrupt.h"
#include "client/session_core.h"
#include "client/wire_spec.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "proto/steady_time.h"

namespace holdfast::client {
namespace {

// How often a wait looks up: for interrupts, and for a change of pump.
constexpr std::chrono::milliseconds kSlice(50);

struct OwnedBytes {
  std::string bytes;
};

// A private copy in shared memory: the mapping and the tensor behind it.
struct OwnedTensor {
  Tensor tensor;
  std::shared_ptr<void> mapping;
};

// Whether `got` is what `pending` promised, its unknown sizes filled in.
bool Completes(const TensorSpec& got, const TensorSpec& pending) {
  if (got.dtype != pending.dtype || got.rank() != pending.rank()) return false;
  for (int i = 0; i < got.rank(); ++i) {
    if (pending.shape[i] != kUnknownSize && got.shape[i] != pending.shape[i]) {
      return false;
    }
  }
  return CheckShape(got.dtype, got.shape).ok();
}

absl::Status Unexpected(const TensorSpec& want, absl::string_view got) {
  return absl::InternalError(
      absl::StrCat("[read] the daemon's answer must fit the tensor. Got ", got,
                   " for ", want.ToString(), "."));
}

}  // namespace

absl::StatusOr<uint64_t> SessionCore::SendRead(
    std::unique_ptr<PendingRead> read, uint64_t handle, bool place) {
  const bool noted = !read->profile;
  const int64_t begin_ns = noted ? ProfileBegin() : 0;
  wire::Command command;
  wire::Read* message = command.mutable_read();
  message->set_handle(handle);
  message->set_place(place);
  message->set_spec_only(read->spec_only);
  message->set_profile(read->profile);
  message->set_share(read->share);
  message->set_hold(read->held_share);
  message->set_export_memory(read->export_memory);
  message->set_complete(read->complete);
  message->set_progress(read->progress);
  uint64_t id = 0;
  {
    std::lock_guard<std::mutex> lock(reads_mutex_);
    id = next_read_++;
    reads_[id] = std::move(read);
  }
  message->set_id(id);
  absl::Status status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    status = SendCommand(command);
    if (status.ok()) Note(ProfiledKind::kRead, id, begin_ns);
  }
  if (status.ok()) return id;
  std::unique_ptr<PendingRead> failed;  // dropped after the lock
  std::lock_guard<std::mutex> lock(reads_mutex_);
  failed = std::move(reads_[id]);
  reads_.erase(id);
  return status;
}

absl::StatusOr<uint64_t> SessionCore::StartRead(const Tensor& tensor,
                                                bool place) {
  if (!usable()) return Unusable();
  absl::Status status = CheckOwner("read", tensor);
  if (status.ok()) status = Settle(tensor, nullptr);
  if (!status.ok()) return status;
  auto read = std::make_unique<PendingRead>();
  read->spec = tensor->spec();
  uint64_t handle = tensor->handle();
  const bool mapped = local_ && !tensor->storage()->memory().foreign;
  if (place && mapped && !hello_.device_memory()) {
    read->hold = std::make_unique<ExportHold>(tensor, &exports_);
  } else if (local_ && static_cast<uint64_t>(tensor->spec().nbytes()) >
                           hello_.inline_limit()) {
    // Too large for the ring: a copy on the server that only we look at.
    const Attrs clone(&GetOp(OpId::clone));
    status = Apply(clone, {&tensor, 1}, /*inplace=*/false, /*record=*/false,
                   {&read->copy, 1});
    if (!status.ok()) return status;
    handle = read->copy->handle();
    place = true;
  } else {
    place = false;
  }
  return SendRead(std::move(read), handle, place);
}

void SessionCore::WaitForEvents(std::unique_lock<std::mutex>* reads_lock) {
  if (pumping_) {
    read_done_.wait_for(*reads_lock, kSlice);
    return;
  }
  pumping_ = true;
  reads_lock->unlock();
  const absl::Status status = Pump(SteadyNow() + absl::FromChrono(kSlice));
  if (!status.ok()) End(status);
  reads_lock->lock();
  pumping_ = false;
  read_done_.notify_all();
}

absl::StatusOr<ReadValue> SessionCore::WaitRead(
    uint64_t id, const std::function<bool()>& interrupted) {
  const int64_t begin_ns = ProfileBegin();
  absl::StatusOr<ReadValue> value = FinishRead(id, interrupted);
  if (ABSL_PREDICT_FALSE(begin_ns != 0)) {
    std::lock_guard<std::mutex> lock(mutex_);
    Note(ProfiledKind::kWait, id, begin_ns);
  }
  return value;
}

absl::StatusOr<ReadValue> SessionCore::FinishRead(
    uint64_t id, const std::function<bool()>& interrupted) {
  if (ForkGeneration() != fork_generation_) return Unusable();
  const uint64_t interrupts = g_interrupts.load();
  std::unique_ptr<PendingRead> taken;  // dropped after the lock
  absl::Status failure;
  {
    std::unique_lock<std::mutex> lock(reads_mutex_);
    const auto found = reads_.find(id);
    if (found == reads_.end()) {
      return absl::NotFoundError(absl::StrCat(
          "[read] each read is waited for once. Got id ", id, "."));
    }
    PendingRead* read = found->second.get();  // only we erase it
    while (!read->done) {
      if (ended_.load(std::memory_order_acquire)) {
        failure = Unusable();
        break;
      }
      WaitForEvents(&lock);
      if (read->done || interrupted == nullptr) continue;
      lock.unlock();
      const bool stop = interrupted();
      lock.lock();
      if (stop && !read->done) {
        failure = absl::CancelledError("[read] the wait was interrupted.");
        break;
      }
    }
    const auto mine = reads_.find(id);
    if (!failure.ok() && mine->second->names) {
      mine->second->abandoned = true;  // its answer may bring handles
      lock.unlock();
      NoteInterrupt(interrupts);
      return failure;
    }
    taken = std::move(mine->second);
    reads_.erase(mine);
  }
  if (!failure.ok()) {
    NoteInterrupt(interrupts);
    return failure;
  }
  NoteDropped(taken->result);
  ReadValue value;
  failure = FillValue(*taken, &value);
  if (absl::IsCancelled(failure)) NoteInterrupt(interrupts);
  if (!failure.ok()) return failure;
  return value;
}

bool SessionCore::ReadReady(uint64_t id) {
  if (!usable()) return true;
  std::unique_lock<std::mutex> lock(reads_mutex_);
  const auto done = [&] {
    const auto found = reads_.find(id);
    return found == reads_.end() || found->second->done;
  };
  if (done() || pumping_) return done();
  pumping_ = true;
  lock.unlock();
  const absl::Status status = Pump(SteadyTime::Past());
  if (!status.ok()) End(status);
  lock.lock();
  pumping_ = false;
  read_done_.notify_all();
  return done() || ended_.load(std::memory_order_acquire);
}

absl::Status SessionCore::Settle(const Tensor& tensor,
                                 const std::function<bool()>& interrupted) {
  if (!tensor->pending()) return absl::OkStatus();
  if (!usable()) return Unusable();
  absl::Status status = CheckOwner("read", tensor);
  if (!status.ok()) return status;
  auto read = std::make_unique<PendingRead>();
  read->spec_only = true;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    read->spec = tensor->spec();
  }
  absl::StatusOr<uint64_t> id =
      SendRead(std::move(read), tensor->handle(), /*place=*/false);
  if (!id.ok()) return id.status();
  absl::StatusOr<ReadValue> value = WaitRead(*id, interrupted);
  if (!value.ok()) return value.status();
  // Two threads may have asked.
  std::lock_guard<std::mutex> lock(mutex_);
  if (tensor->pending()) tensor->Settle(value->spec.shape);
  return absl::OkStatus();
}

absl::StatusOr<uintptr_t> SessionCore::Address(
    const Tensor& tensor, const std::function<bool()>& interrupted) {
  absl::StatusOr<uint64_t> id = StartRead(tensor, /*place=*/true);
  if (!id.ok()) return id.status();
  absl::StatusOr<ReadValue> value = WaitRead(*id, interrupted);
  if (!value.ok()) return value.status();
  if (!value->placed || hello_.device_memory()) return 0;
  StorageState& memory = tensor->storage()->memory();
  const auto hold = std::static_pointer_cast<ExportHold>(value->owner);
  std::lock_guard<std::mutex> lock(mutex_);
  if (memory.address_hold == nullptr) {
    memory.address_hold = std::make_shared<AddressHold>(
        &memory, weak_from_this(), &exports_, hold->mapping());
  }
  return reinterpret_cast<uintptr_t>(value->data) +
         value->spec.offset * ItemSize(value->spec.dtype);
}

absl::Status SessionCore::SettleAll(absl::Span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    if (!tensor || !tensor->pending()) continue;
    absl::Status status = Settle(tensor, nullptr);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SessionCore::Synchronize(
    const std::function<bool()>& interrupted) {
  if (!usable()) return Unusable();
  auto read = std::make_unique<PendingRead>();
  read->barrier = true;
  absl::StatusOr<uint64_t> id = SendRead(std::move(read), 0, false);
  if (!id.ok()) return id.status();
  return WaitRead(*id, interrupted).status();
}

absl::Status SessionCore::Pump(SteadyTime deadline) {
  wire::Event event;
  absl::StatusOr<bool> got = connection_->NextEvent(deadline, &event);
  while (got.ok() && *got) {
    HandleEvent(std::move(event));
    event.Clear();
    got = connection_->NextEvent(SteadyTime::Past(), &event);
  }
  return got.status();
}

void SessionCore::HandleEvent(wire::Event event) {
  if (event.has_session_error()) {
    End(ToAbslStatus(event.session_error()));
  } else if (event.has_call()) {
    std::lock_guard<std::mutex> lock(reads_mutex_);
    calls_.push_back(std::move(*event.mutable_call()));
    read_done_.notify_all();
  } else if (event.has_read() && IsProbe(event.read().id())) {
    TakeProbe(event.read());
  } else if (event.has_read()) {
    std::unique_lock<std::mutex> lock(reads_mutex_);
    const auto found = reads_.find(event.read().id());
    if (found != reads_.end() && found->second->abandoned) {
      reads_.erase(found);
      lock.unlock();
      ReleaseFound(event.read());
      return;
    }
    if (found == reads_.end()) {  // its wait was interrupted
      if (event.read().download() != 0) {
        connection_->Discard(event.read().download());
      }
      lock.unlock();
      NoteDropped(event.read());
      return;
    }
    found->second->result = std::move(*event.mutable_read());
    found->second->done = true;
    read_done_.notify_all();
  }
}

absl::Status SessionCore::FillValue(PendingRead& read, ReadValue* value) {
  wire::ReadResult& result = read.result;
  if (result.status().code() != 0) return ToAbslStatus(result.status());
  if (read.barrier) return absl::OkStatus();
  if (read.spec_only) {
    TensorSpec spec = SpecFromWire(result.spec());
    if (!Completes(spec, read.spec)) {
      return Unexpected(read.spec, result.spec().ShortDebugString());
    }
    value->spec = std::move(spec);
    return absl::OkStatus();
  }
  if (read.profile || read.share || read.names ||
      read.export_memory) {  // however many bytes they are
    read.spec = ContiguousSpec(DType::kUInt8,
                               {static_cast<int64_t>(result.data().size())});
  }
  value->spec = ContiguousSpec(read.spec.dtype, read.spec.shape);
  const uint64_t bytes = value->spec.nbytes();
  switch (result.value_case()) {
    case wire::ReadResult::kPlace: {
      const TensorSpec spec = SpecFromWire(result.spec());
      if (spec.dtype != read.spec.dtype || spec.shape != read.spec.shape ||
          !CheckFits(spec, result.place().bytes()).ok()) {
        return Unexpected(read.spec, result.spec().ShortDebugString());
      }
      absl::StatusOr<MappedBytes> memory = connection_->Locate(result.place());
      if (!memory.ok()) return memory.status();
      value->data = memory->data;
      if (read.hold) {
        value->spec = spec;
        value->placed = true;
        read.hold->set_mapping(std::move(memory->owner));
        value->owner = std::shared_ptr<ExportHold>(std::move(read.hold));
      } else {
        if (!spec.contiguous()) {
          return Unexpected(read.spec, "a copy with gaps");
        }
        value->data = memory->data + spec.offset * ItemSize(spec.dtype);
        value->owner = std::make_shared<OwnedTensor>(
            OwnedTensor{std::move(read.copy), std::move(memory->owner)});
      }
      return absl::OkStatus();
    }
    case wire::ReadResult::kDownload: {
      auto owned = std::make_shared<OwnedBytes>();
      absl::Status status =
          connection_->Download(result.download(), bytes, &owned->bytes);
      if (!status.ok()) return status;
      value->data = owned->bytes.data();
      value->owner = std::move(owned);
      return absl::OkStatus();
    }
    default: {
      if (result.data().size() != bytes) {
        return Unexpected(read.spec,
                          absl::StrCat(result.data().size(), " bytes"));
      }
      auto owned = std::make_shared<OwnedBytes>();
      owned->bytes = std::move(*result.mutable_data());
      value->data = owned->bytes.data();
      value->owner = std::move(owned);
      return absl::OkStatus();
    }
  }
}

}  // namespace holdfast::client
