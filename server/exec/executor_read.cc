// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: the Read command.
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
    // Synchronisation tells of failures that no read has shown yet.
    const absl::Status status = device_->Synchronize(0);
    if (!status.ok()) {
      StatusToProto(status, result.mutable_status());
    } else if (FailurePtr failure = std::move(unreported_)) {
      unreported_ = nullptr;
      ReportFailure(*failure, result.mutable_status());
      ListLost(*failure, &result);
    }
    sink_->Reply(std::move(result));
    return absl::OkStatus();
  }
  FailurePtr failure;
  absl::StatusOr<Value> tensor = Resolve(read.handle(), &failure);
  if (!tensor.ok()) return tensor.status();
  if (failure != nullptr) {
    ReportFailure(*failure, result.mutable_status());
    ListLost(*failure, &result);
  } else if (absl::Status s = FillRead(read, *tensor, &result); !s.ok()) {
    result.clear_value();
    StatusToProto(s, result.mutable_status());
  }
  sink_->Reply(std::move(result));
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
                                v1::ReadResult* result) {
  const Tensor* source = AsTensor(tensor);
  if (absl::Status s = device_->Synchronize(0); !s.ok()) return s;
  if (read.spec_only()) {
    SpecToProto(source->spec(), result->mutable_spec());
    return absl::OkStatus();
  }
  if (read.place() && options_.local) {
    const MemoryBlock& block = source->storage()->block();
    result->mutable_place()->set_segment(block.segment);
    result->mutable_place()->set_offset(block.offset);
    result->mutable_place()->set_bytes(block.bytes);
    SpecToProto(source->spec(), result->mutable_spec());
    return absl::OkStatus();
  }
  Values copy;
  if (!source->spec().contiguous()) {
    Attrs clone(&GetOp(OpId::clone));
    absl::Status s = runner_.Run(clone, {&tensor, 1}, /*record=*/false,
                                 /*inplace=*/false, &copy);
    if (!s.ok()) return s;
    source = AsTensor(copy[0]);
  }
  const size_t bytes = source->spec().nbytes();
  SpecToProto(ContiguousSpec(source->spec().dtype, source->spec().shape),
              result->mutable_spec());
  if (bytes <= options_.inline_limit_bytes) {
    std::string* data = result->mutable_data();
    data->resize(bytes);
    return device_->CopyToHost(data->data(), source->data(), bytes);
  }
  auto download = std::make_shared<std::vector<uint8_t>>(bytes);
  absl::Status s = device_->CopyToHost(download->data(), source->data(), bytes);
  if (!s.ok()) return s;
  absl::StatusOr<uint64_t> id = sink_->AddDownload(std::move(download));
  if (!id.ok()) return id.status();
  result->set_download(*id);
  return absl::OkStatus();
}

}  // namespace holdfast
