// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/host_staging.h"

#include <cstring>
#include <memory>
#include <utility>

#include "server/memory/pinned_memory.h"

namespace holdfast {

HostStaging::HostStaging(std::vector<Device*> devices, bool shared,
                         size_t limit_bytes,
                         std::shared_ptr<MemoryAccount> account)
    : devices_(std::move(devices)),
      memory_(std::make_unique<PinnedMemory>(devices_, shared), limit_bytes,
              kHost, account),
      unseen_(std::make_unique<PinnedMemory>(devices_, /*shared=*/false),
              limit_bytes, kHost, account) {}

void HostStaging::set_limit_bytes(size_t bytes) {
  memory_.set_limit_bytes(bytes);
  unseen_.set_limit_bytes(bytes);
}

void HostStaging::ReleaseCached(bool leave_mapped) {
  if (!leave_mapped) memory_.ReleaseCached();
  unseen_.ReleaseCached();
}

absl::StatusOr<MemoryBlock*> HostStaging::Target(const SessionDevice& at,
                                                 size_t bytes) {
  absl::StatusOr<StreamId> stream = at.copies->ForUpload(bytes);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<MemoryBlock*> block = at.memory->Allocate(bytes, *stream);
  if (block.ok() && *stream != at.stream) {
    at.memory->UseOnStream(*block, at.stream);
  }
  return block;
}

absl::Status HostStaging::Upload(const SessionDevice& at,
                                 const MemoryBlock& target,
                                 absl::string_view bytes, size_t offset) {
  if (bytes.empty()) return absl::OkStatus();
  absl::StatusOr<MemoryBlock*> block = memory_.Allocate(bytes.size(), kHost);
  if (!block.ok()) return block.status();
  std::memcpy((*block)->data, bytes.data(), bytes.size());
  absl::Status status =
      CopyUp(at, &memory_, target, *block, bytes.size(), offset);
  memory_.Free(*block);
  return status;
}

absl::StatusOr<KnownBounds> HostStaging::UploadIntegers(
    const SessionDevice& at, const MemoryBlock& target, const void* host,
    DType dtype, size_t bytes) {
  absl::StatusOr<MemoryBlock*> block = unseen_.Allocate(bytes, kHost);
  if (!block.ok()) return block.status();
  std::memcpy((*block)->data, host, bytes);
  const KnownBounds bounds =
      BoundsOfElements(dtype, (*block)->data, bytes / ItemSize(dtype));
  absl::Status status = CopyUp(at, &unseen_, target, *block, bytes);
  unseen_.Free(*block);
  if (!status.ok()) return status;
  return bounds;
}

absl::Status HostStaging::UploadBlock(const SessionDevice& at,
                                      const MemoryBlock& target,
                                      MemoryBlock* block, size_t bytes) {
  return CopyUp(at, &memory_, target, block, bytes);
}

absl::Status HostStaging::CopyUp(const SessionDevice& at,
                                 CachingAllocator* allocator,
                                 const MemoryBlock& target, MemoryBlock* block,
                                 size_t bytes, size_t offset) {
  if (bytes == 0) return absl::OkStatus();
  allocator->UseOnStream(block,
                         PinnedMemory::NameOf(at.place(), target.stream));
  absl::Status status = at.device->Copy(
      target.stream, Device::CopyKind::kToDevice,
      static_cast<char*>(target.data) + offset, block->data, bytes);
  return status.ok() ? at.copies->Before(target.stream) : status;
}

absl::StatusOr<HostStaging::Arrival> HostStaging::Download(
    const SessionDevice& at, const void* data, size_t bytes) {
  absl::StatusOr<StreamId> stream = at.copies->ForDownload(bytes);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<MemoryBlock*> block = memory_.Allocate(bytes, kHost);
  if (!block.ok()) return block.status();
  absl::Status status;
  if (bytes > 0) {
    // Before the copy is known to be enqueued, so that the block is never
    // reused under it.
    memory_.UseOnStream(*block, PinnedMemory::NameOf(at.place(), *stream));
    status = at.copies->After(*stream);
    if (status.ok()) {
      status = at.device->Copy(*stream, Device::CopyKind::kToHost,
                               (*block)->data, data, bytes);
    }
  }
  if (status.ok()) {
    return Arrival{*block, *stream, at.device->RecordPoint(*stream)};
  }
  memory_.Free(*block);
  return status;
}

}  // namespace holdfast
