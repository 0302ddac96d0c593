// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// HostStaging: the host memory through which the bytes of a session come to a
// device whose memory the host does not see, and go. Copies are enqueued on
// the session's stream, large ones on streams of their own (copy_streams.h),
// and never waited for here; a block goes back to the allocator at once and is
// used again when the stream has passed the copy.
// Thread-safety: memory() from any thread, the rest from the worker thread.
#ifndef HOLDFAST_SERVER_EXEC_HOST_STAGING_H_
#define HOLDFAST_SERVER_EXEC_HOST_STAGING_H_

#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"
#include "server/exec/copy_streams.h"
#include "server/exec/integer_bounds.h"
#include "server/memory/caching_allocator.h"

namespace holdfast {

class HostStaging {
 public:
  // Blocks belong to the host: no device stream reuses one without asking.
  static constexpr StreamId kHost = std::numeric_limits<StreamId>::max();

  // `shared`: segments that a local client may map. `device` must outlive it.
  HostStaging(Device* device, StreamId stream, int priority, bool shared,
              size_t limit_bytes);

  // Device memory that an upload fills: a block of `memory`, the session's, for
  // the stream that will copy. What is launched on the session's stream after
  // the upload sees its bytes.
  absl::StatusOr<MemoryBlock*> Target(CachingAllocator* memory, size_t bytes);
  // Copies to a Target, from `offset` bytes on; `bytes` may change when it
  // returns.
  absl::Status Upload(const MemoryBlock& target, absl::string_view bytes,
                      size_t offset = 0);
  // The same from a block of memory(), which its owner may free right away.
  absl::Status UploadBlock(const MemoryBlock& target, MemoryBlock* block,
                           size_t bytes);
  // Copies int32 or int64 elements by way of memory that no client sees, and
  // tells what is known of them.
  absl::StatusOr<KnownBounds> UploadIntegers(const MemoryBlock& target,
                                             const void* host, DType dtype,
                                             size_t bytes);
  // Those that are worth a look, which takes the host a millisecond at most.
  static constexpr size_t kMostIntegerBytes = size_t{8} << 20;
  struct Arrival {
    MemoryBlock* block;  // of memory(); free it there
    StreamId stream;     // the copy's: until it is done, nobody may write there
    uint64_t point;      // once it has passed, the block holds the bytes
  };
  absl::StatusOr<Arrival> Download(const void* device, size_t bytes);

  CopyStreams& streams() { return streams_; }

  CachingAllocator& memory() { return memory_; }
  const CachingAllocator& memory() const { return memory_; }

 private:
  absl::Status CopyUp(CachingAllocator* allocator, const MemoryBlock& target,
                      MemoryBlock* block, size_t bytes, size_t offset = 0);

  Device* const device_;
  const StreamId stream_;
  CopyStreams streams_;  // outlives the memory
  const size_t limit_bytes_;
  CachingAllocator memory_;
  std::optional<CachingAllocator> unseen_;  // by clients; made when needed
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_HOST_STAGING_H_
