// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/host_staging.h"

#include <cstring>
#include <memory>

#include "server/memory/pinned_memory.h"

namespace holdfast {

HostStaging::HostStaging(Device* device, StreamId stream, int priority,
                         bool shared, size_t limit_bytes)
    : device_(device),
      stream_(stream),
      streams_(device, stream, priority),
      limit_bytes_(limit_bytes),
      memory_(std::make_unique<PinnedMemory>(device, shared), limit_bytes,
              kHost) {}

absl::StatusOr<MemoryBlock*> HostStaging::Target(CachingAllocator* memory,
                                                 size_t bytes) {
  absl::StatusOr<StreamId> stream = streams_.ForUpload(bytes);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<MemoryBlock*> block = memory->Allocate(bytes, *stream);
  if (block.ok() && *stream != stream_) memory->UseOnStream(*block, stream_);
  return block;
}

absl::Status HostStaging::Upload(const MemoryBlock& target,
                                 absl::string_view bytes, size_t offset) {
  if (bytes.empty()) return absl::OkStatus();
  absl::StatusOr<MemoryBlock*> block = memory_.Allocate(bytes.size(), kHost);
  if (!block.ok()) return block.status();
  std::memcpy((*block)->data, bytes.data(), bytes.size());
  absl::Status status = CopyUp(&memory_, target, *block, bytes.size(), offset);
  memory_.Free(*block);
  return status;
}

absl::StatusOr<KnownBounds> HostStaging::UploadIntegers(
    const MemoryBlock& target, const void* host, DType dtype, size_t bytes) {
  if (!unseen_) {
    unseen_.emplace(std::make_unique<PinnedMemory>(device_, /*shared=*/false),
                    limit_bytes_, kHost);
  }
  absl::StatusOr<MemoryBlock*> block = unseen_->Allocate(bytes, kHost);
  if (!block.ok()) return block.status();
  std::memcpy((*block)->data, host, bytes);
  const KnownBounds bounds =
      BoundsOfElements(dtype, (*block)->data, bytes / ItemSize(dtype));
  absl::Status status = CopyUp(&*unseen_, target, *block, bytes);
  unseen_->Free(*block);
  if (!status.ok()) return status;
  return bounds;
}

absl::Status HostStaging::UploadBlock(const MemoryBlock& target,
                                      MemoryBlock* block, size_t bytes) {
  return CopyUp(&memory_, target, block, bytes);
}

absl::Status HostStaging::CopyUp(CachingAllocator* allocator,
                                 const MemoryBlock& target, MemoryBlock* block,
                                 size_t bytes, size_t offset) {
  if (bytes == 0) return absl::OkStatus();
  allocator->UseOnStream(block, target.stream);
  absl::Status status = device_->Copy(
      target.stream, Device::CopyKind::kToDevice,
      static_cast<char*>(target.data) + offset, block->data, bytes);
  return status.ok() ? streams_.Before(target.stream) : status;
}

absl::StatusOr<HostStaging::Arrival> HostStaging::Download(const void* device,
                                                           size_t bytes) {
  absl::StatusOr<StreamId> stream = streams_.ForDownload(bytes);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<MemoryBlock*> block = memory_.Allocate(bytes, kHost);
  if (!block.ok()) return block.status();
  absl::Status status;
  if (bytes > 0) {
    // Before the copy is known to be enqueued, so that the block is never
    // reused under it.
    memory_.UseOnStream(*block, *stream);
    status = streams_.After(*stream);
    if (status.ok()) {
      status = device_->Copy(*stream, Device::CopyKind::kToHost, (*block)->data,
                             device, bytes);
    }
  }
  if (status.ok()) {
    return Arrival{*block, *stream, device_->RecordPoint(*stream)};
  }
  memory_.Free(*block);
  return status;
}

}  // namespace holdfast
