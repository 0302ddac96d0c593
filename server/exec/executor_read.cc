// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: the Read command. Where the host sees device memory a read waits
// and copies. Elsewhere it enqueues the copy and is answered when that is done,
// while the commands behind it go on.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "proto/convert.h"
#include "server/exec/executor.h"

namespace holdfast {

absl::Status Executor::ApplyRead(const v1::Read& read) {
  if (read.profile()) return ApplyReadProfile(read);
  v1::ReadResult result;
  result.set_id(read.id());
  if (read.handle() == 0) {
    TellDropped(&result);
    if (read.progress()) {
      result.set_device_seconds(0);  // the sink knows it
    } else if (FailurePtr failure = std::move(unreported_)) {
      // Synchronisation tells of failures that no read has shown yet.
      unreported_ = nullptr;
      ReportFailure(*failure, result.mutable_status());
      ListLost(*failure, &result);
    }
    AwaitDevices(std::move(result), Value());
    FinishReads();
    return absl::OkStatus();
  }
  FailurePtr failure;
  absl::StatusOr<Value> tensor = Resolve(read.handle(), &failure);
  if (!tensor.ok()) return tensor.status();
  bool arrived = true;
  if (failure != nullptr) {
    ReportFailure(*failure, result.mutable_status());
    ListLost(*failure, &result);
  } else if (read.share()) {
    ShareStorage(read, *tensor, &result);
  } else if (absl::Status s = FillRead(read, *tensor, &result, &arrived);
             !s.ok()) {
    result.clear_value();
    StatusToProto(s, result.mutable_status());
  }
  if (arrived) {
    sink_->Reply(std::move(result));
  } else {
    FinishReads();
  }
  return absl::OkStatus();
}

void Executor::ListLost(OpFailure& failure, v1::ReadResult* result) const {
  for (const uint64_t handle : failure.gradients) {
    const TensorStore::Entry* entry = store_.Find(handle);
    if (entry != nullptr && !entry->tensor) result->add_lost(handle);
  }
  failure.gradients.clear();
}

absl::Status Executor::FillRead(const v1::Read& read, const Value& tensor,
                                v1::ReadResult* result, bool* arrived) {
  if (read.spec_only()) {
    SpecToProto(AsTensor(tensor)->spec(), result->mutable_spec());
    *arrived = !read.complete();
    if (!*arrived) AwaitDevices(std::move(*result), tensor);
    return absl::OkStatus();
  }
  if (read.export_memory()) {
    absl::Status s = ExportMemory(tensor, result);
    *arrived = !s.ok();
    return s;
  }
  if (!staging_) return ReadHostMemory(read, tensor, result);
  absl::Status s = StartDownload(read, tensor, result);
  *arrived = !s.ok();
  return s;
}

void Executor::AwaitDevices(v1::ReadResult result, Value source) {
  WaitingRead waiting;
  waiting.points = devices_.RecordPoints();
  waiting.result = std::move(result);
  waiting.source = std::move(source);
  reads_.push_back(std::move(waiting));
}

absl::StatusOr<Value> Executor::Gathered(const Value& tensor) {
  if (tensor->spec().contiguous()) return tensor;
  Values copy;
  absl::Status s =
      runner_.Run(Attrs(&GetOp(OpId::clone)), {&tensor, 1}, /*record=*/false,
                  /*inplace=*/false, &copy);
  if (!s.ok()) return s;
  return copy[0];
}

SharedBytes NewSharedBytes() {
  const HeapMeter::Elsewhere elsewhere;
  return SharedBytes(new std::vector<uint8_t>, [](std::vector<uint8_t>* bytes) {
    const HeapMeter::Elsewhere elsewhere;
    delete bytes;
  });
}

absl::Status Executor::AddBytes(absl::string_view bytes,
                                v1::ReadResult* result) {
  if (bytes.size() <= options_.inline_limit_bytes) {
    result->set_data(bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  SharedBytes copy = NewSharedBytes();
  {
    const HeapMeter::Elsewhere elsewhere;
    copy->assign(bytes.begin(), bytes.end());
  }
  absl::StatusOr<uint64_t> id = sink_->AddDownload(std::move(copy));
  if (!id.ok()) return id.status();
  result->set_download(*id);
  return absl::OkStatus();
}

absl::Status Executor::ReadHostMemory(const v1::Read& read, const Value& tensor,
                                      v1::ReadResult* result) {
  const Tensor* source = AsTensor(tensor);
  absl::Status s = device_->Synchronize(options_.stream);
  if (!s.ok()) return s;
  if (read.place() && local_ && !IsForeign(*source->storage())) {
    const MemoryBlock& block = source->storage()->block();
    result->mutable_place()->set_segment(block.segment);
    result->mutable_place()->set_offset(block.offset);
    result->mutable_place()->set_bytes(block.bytes);
    SpecToProto(source->spec(), result->mutable_spec());
    return absl::OkStatus();
  }
  absl::StatusOr<Value> gathered = Gathered(tensor);
  if (!gathered.ok()) return gathered.status();
  if (s = device_->Synchronize(options_.stream); !s.ok()) return s;
  source = AsTensor(*gathered);
  SpecToProto(ContiguousSpec(source->spec().dtype, source->spec().shape),
              result->mutable_spec());
  return AddBytes({static_cast<const char*>(source->data()),
                   static_cast<size_t>(source->spec().nbytes())},
                  result);
}

// The bytes go to a block of the staging memory. What a local client asks for
// by place it finds there. It has made the tensor for this one read, and keeps
// the handle while it looks at the bytes: the device's memory goes now.
absl::Status Executor::StartDownload(const v1::Read& read, const Value& tensor,
                                     v1::ReadResult* result) {
  if (absl::Status s = runner_.Join(tensor); !s.ok()) return s;
  absl::StatusOr<Value> gathered = Gathered(tensor);
  if (!gathered.ok()) return gathered.status();
  const Tensor* source = AsTensor(*gathered);
  const size_t bytes = source->spec().nbytes();
  absl::StatusOr<SessionDevice*> at = devices_.Find(source->spec().device);
  if (!at.ok()) return at.status();
  absl::StatusOr<HostStaging::Arrival> arrival =
      staging_->Download(**at, source->data(), bytes);
  if (!arrival.ok()) return arrival.status();
  const MemoryBlock& block = *arrival->block;
  if (arrival->stream != (*at)->stream) {
    // One after the other: who waits for the last has waited for all.
    const StreamId other = source->storage()->TakeReader();
    if (other != 0 && other != arrival->stream) {
      absl::Status s = (*at)->device->Order(other, arrival->stream);
      if (!s.ok()) return s;
    }
    source->storage()->NoteReader(arrival->stream);
  }
  WaitingRead waiting;
  waiting.staging = MakeRef<Storage>(&staging_->memory(), arrival->block);
  waiting.bytes = bytes;
  waiting.source = *gathered;
  SpecToProto(ContiguousSpec(source->spec().dtype, source->spec().shape),
              result->mutable_spec());
  if (read.place() && local_) {
    result->mutable_place()->set_segment(block.segment);
    result->mutable_place()->set_offset(block.offset);
    result->mutable_place()->set_bytes(block.bytes);
    auto used = std::make_shared<OpFailure>();
    used->status = absl::FailedPreconditionError(
        "[read] the tensor was read by place: it is host memory now");
    used->op = "read";
    used->op_sequence = op_sequence_;
    used->reported = true;  // there is nothing to tell before somebody asks
    store_.PutHostCopy(read.handle(), waiting.staging, std::move(used));
  }
  waiting.points = {{(*at)->device, arrival->point}};
  waiting.result = std::move(*result);
  reads_.push_back(std::move(waiting));
  return absl::OkStatus();
}

bool Executor::ReadArrived() const {
  if (reads_.empty()) return false;
  const auto& points = reads_.front().points;
  return std::all_of(points.begin(), points.end(), [](const auto& one) {
    return one.first->PointPassed(one.second);
  });
}

void Executor::FinishReads() {
  while (ReadArrived()) {
    WaitingRead read = std::move(reads_.front());
    reads_.pop_front();
    FinishRead(std::move(read));
  }
}

void Executor::FinishRead(WaitingRead read) {
  if (read.foreign != nullptr) return;  // closed now; nobody asked
  v1::ReadResult& result = read.result;
  if (read.profile) return AnswerProfile(std::move(result));
  absl::Status status = devices_.status();
  if (status.ok() && read.staging && !result.has_place()) {
    status = AddBytes({read.staging->data(), read.bytes}, &result);
  }
  if (!status.ok()) {
    result.clear_value();
    StatusToProto(status, result.mutable_status());
  }
  sink_->Reply(std::move(result));
}

}  // namespace holdfast
