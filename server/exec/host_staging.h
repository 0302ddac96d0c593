// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// HostStaging: the host memory through which the bytes of a session come to a
// device whose memory the host does not see, and go. Copies are enqueued on
// the session's stream and never waited for here; a block goes back to the
// allocator at once and is used again when the stream has passed the copy.
// Thread-safety: memory() from any thread, the rest from the worker thread.
#ifndef HOLDFAST_SERVER_EXEC_HOST_STAGING_H_
#define HOLDFAST_SERVER_EXEC_HOST_STAGING_H_

#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"
#include "server/exec/integer_bounds.h"
#include "server/memory/caching_allocator.h"

namespace holdfast {

class HostStaging {
 public:
  // Blocks belong to the host: no device stream reuses one without asking.
  static constexpr StreamId kHost = std::numeric_limits<StreamId>::max();

  // `shared`: segments that a local client may map. `device` must outlive it.
  HostStaging(Device* device, StreamId stream, bool shared, size_t limit_bytes);

  // Copies to device memory; `bytes` may change when it returns.
  absl::Status Upload(void* device, absl::string_view bytes);
  // The same from a block of memory(), which its owner may free right away.
  absl::Status UploadBlock(void* device, MemoryBlock* block, size_t bytes);
  // Copies int32 or int64 elements by way of memory that no client sees, and
  // tells what is known of them.
  absl::StatusOr<KnownBounds> UploadIntegers(void* device, const void* host,
                                             DType dtype, size_t bytes);
  // Those that are worth a look, which takes the host a millisecond at most.
  static constexpr size_t kMostIntegerBytes = size_t{8} << 20;
  // A block of memory() that holds the bytes once the stream has passed a
  // point recorded after the call. Free it into memory().
  absl::StatusOr<MemoryBlock*> Download(const void* device, size_t bytes);

  CachingAllocator& memory() { return memory_; }
  const CachingAllocator& memory() const { return memory_; }

 private:
  absl::Status CopyUp(CachingAllocator* allocator, void* device,
                      MemoryBlock* block, size_t bytes);

  Device* const device_;
  const StreamId stream_;
  const size_t limit_bytes_;
  CachingAllocator memory_;
  std::optional<CachingAllocator> unseen_;  // by clients; made when needed
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_HOST_STAGING_H_
