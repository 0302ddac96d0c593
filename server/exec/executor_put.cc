// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: the Put command. Where the host sees device memory, a client has
// written the tensor's block already. Elsewhere the bytes are copied there, to
// the device that the spec names.
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/convert.h"
#include "server/exec/executor.h"

namespace holdfast {

absl::Status Executor::ApplyPut(const v1::Put& put) {
  ++op_sequence_;
  if (absl::Status s = Promise(put.handle(), 1); !s.ok()) return s;
  if (full()) {
    store_.PutFailure(put.handle(), FullFailure("put"));
    return absl::OkStatus();
  }
  absl::StatusOr<Value> tensor = MakeFromPut(put);
  if (tensor.ok()) {
    store_.Put(put.handle(), *std::move(tensor));
  } else {
    store_.PutFailure(put.handle(), NewFailure(tensor.status(), "put"));
  }
  return absl::OkStatus();
}

namespace {

// Whether an upload of such elements is to tell what they are.
bool LooksAt(const TensorSpec& spec) {
  const size_t bytes = spec.nbytes();
  return (spec.dtype == DType::kInt64 || spec.dtype == DType::kInt32) &&
         bytes > 0 && bytes <= HostStaging::kMostIntegerBytes;
}

}  // namespace

absl::StatusOr<RefPtr<Tensor>> Executor::NewUploaded(const SessionDevice& at,
                                                     TensorSpec spec) {
  if (!staging_) return runner_.NewTensor(std::move(spec));
  absl::StatusOr<MemoryBlock*> block = HostStaging::Target(at, spec.nbytes());
  if (!block.ok()) return block.status();
  return MakeRef<Tensor>(std::move(spec), MakeRef<Storage>(at.memory, *block));
}

absl::Status Executor::UploadIntegers(const SessionDevice& at, const void* host,
                                      Tensor* tensor) {
  const TensorSpec& spec = tensor->spec();
  absl::StatusOr<KnownBounds> known = staging_->UploadIntegers(
      at, tensor->storage()->block(), host, spec.dtype, spec.nbytes());
  if (!known.ok()) return known.status();
  if (*known) {
    tensor->storage()->set_integers(std::make_unique<Storage::Integers>(
        Storage::Integers{**known, spec.dtype}));
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> Executor::MakeFromPut(const v1::Put& put) {
  absl::StatusOr<TensorSpec> spec = SpecFromProto(put.spec());
  if (!spec.ok()) return spec.status();
  if (!spec->contiguous() || spec->offset != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[put] the spec must be contiguous. Got ", spec->ToString(),
        " strides ", ShapeString(spec->strides)));
  }
  if (put.has_inherited()) return CopyInherited(put.inherited(), *spec);
  if (put.has_foreign()) return CopyForeign(put.foreign(), *std::move(spec));
  const size_t bytes = spec->nbytes();
  auto wrong_size = [&](size_t got) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[put] ", spec->ToString(), " takes ", bytes, " bytes. Got ", got));
  };
  if (put.source_case() == v1::Put::kBlock) {
    MemoryBlock* block = nullptr;
    {
      std::lock_guard<std::mutex> lock(blocks_mutex_);
      const auto it = blocks_.find(put.block());
      if (it == blocks_.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("[put] unknown block ", put.block()));
      }
      block = it->second;
      blocks_.erase(it);
    }
    auto storage =
        MakeRef<Storage>(staging_ ? &staging_->memory() : &memory_, block);
    if (block->bytes < bytes) return wrong_size(block->bytes);
    absl::StatusOr<SessionDevice*> at = devices_.Find(spec->device);
    if (!at.ok()) return at.status();
    if (!staging_) {
      return Value(MakeRef<Tensor>(*std::move(spec), std::move(storage)));
    }
    absl::StatusOr<RefPtr<Tensor>> tensor = NewUploaded(**at, *std::move(spec));
    if (!tensor.ok()) return tensor.status();
    const MemoryBlock& target = (*tensor)->storage()->block();
    absl::Status s = LooksAt((*tensor)->spec())
                         ? UploadIntegers(**at, block->data, tensor->get())
                         : staging_->UploadBlock(**at, target, block, bytes);
    if (!s.ok()) return s;
    return Value(*std::move(tensor));
  }
  SharedBytes upload;
  absl::string_view data = put.data();
  if (put.source_case() == v1::Put::kUpload) {
    absl::StatusOr<SharedBytes> taken = sink_->TakeUpload(put.upload());
    if (!taken.ok()) return taken.status();
    upload = *std::move(taken);
    data = {reinterpret_cast<const char*>(upload->data()), upload->size()};
  }
  if (data.size() != bytes) return wrong_size(data.size());
  absl::StatusOr<SessionDevice*> at = devices_.Find(spec->device);
  if (!at.ok()) return at.status();
  absl::StatusOr<RefPtr<Tensor>> tensor = NewUploaded(**at, *std::move(spec));
  if (!tensor.ok()) return tensor.status();
  if (staging_) {
    const MemoryBlock& target = (*tensor)->storage()->block();
    absl::Status s = LooksAt((*tensor)->spec())
                         ? UploadIntegers(**at, data.data(), tensor->get())
                         : staging_->Upload(**at, target, data);
    if (!s.ok()) return s;
  } else if (bytes > 0) {
    std::memcpy((*tensor)->data(), data.data(), bytes);
  }
  return Value(*std::move(tensor));
}

}  // namespace holdfast
