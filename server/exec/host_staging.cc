// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/host_staging.h"

#include <cstring>
#include <memory>

#include "server/memory/pinned_memory.h"

namespace holdfast {

HostStaging::HostStaging(Device* device, StreamId stream, bool shared,
                         size_t limit_bytes)
    : device_(device),
      stream_(stream),
      limit_bytes_(limit_bytes),
      memory_(std::make_unique<PinnedMemory>(device, shared), limit_bytes,
              kHost) {}

absl::Status HostStaging::Upload(void* device, absl::string_view bytes) {
  if (bytes.empty()) return absl::OkStatus();
  absl::StatusOr<MemoryBlock*> block = memory_.Allocate(bytes.size(), kHost);
  if (!block.ok()) return block.status();
  std::memcpy((*block)->data, bytes.data(), bytes.size());
  absl::Status status = UploadBlock(device, *block, bytes.size());
  memory_.Free(*block);
  return status;
}

absl::StatusOr<KnownBounds> HostStaging::UploadIntegers(void* device,
                                                        const void* host,
                                                        DType dtype,
                                                        size_t bytes) {
  if (!unseen_) {
    unseen_.emplace(std::make_unique<PinnedMemory>(device_, /*shared=*/false),
                    limit_bytes_, kHost);
  }
  absl::StatusOr<MemoryBlock*> block = unseen_->Allocate(bytes, kHost);
  if (!block.ok()) return block.status();
  std::memcpy((*block)->data, host, bytes);
  const KnownBounds bounds =
      BoundsOfElements(dtype, (*block)->data, bytes / ItemSize(dtype));
  absl::Status status = CopyUp(&*unseen_, device, *block, bytes);
  unseen_->Free(*block);
  if (!status.ok()) return status;
  return bounds;
}

absl::Status HostStaging::UploadBlock(void* device, MemoryBlock* block,
                                      size_t bytes) {
  return CopyUp(&memory_, device, block, bytes);
}

absl::Status HostStaging::CopyUp(CachingAllocator* allocator, void* device,
                                 MemoryBlock* block, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  allocator->UseOnStream(block, stream_);
  return device_->Copy(stream_, Device::CopyKind::kToDevice, device,
                       block->data, bytes);
}

absl::StatusOr<MemoryBlock*> HostStaging::Download(const void* device,
                                                   size_t bytes) {
  absl::StatusOr<MemoryBlock*> block = memory_.Allocate(bytes, kHost);
  if (!block.ok() || bytes == 0) return block;
  // Before the copy is known to be enqueued, so that the block is never reused
  // under it.
  memory_.UseOnStream(*block, stream_);
  absl::Status status = device_->Copy(stream_, Device::CopyKind::kToHost,
                                      (*block)->data, device, bytes);
  if (status.ok()) return block;
  memory_.Free(*block);
  return status;
}

}  // namespace holdfast
