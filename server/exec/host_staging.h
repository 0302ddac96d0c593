// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// HostStaging: the host memory through which the bytes of a session come to
// devices whose memory the host does not see, and go. Copies are enqueued on
// the session's stream of that device, large ones on streams of their own
// (copy_streams.h), and never waited for here; a block goes back to the
// allocator at once and is used again when the stream has passed the copy.
// Thread-safety: memory() from any thread, the rest from the worker thread.
#ifndef HOLDFAST_SERVER_EXEC_HOST_STAGING_H_
#define HOLDFAST_SERVER_EXEC_HOST_STAGING_H_

#include <limits>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"
#include "server/exec/integer_bounds.h"
#include "server/exec/session_devices.h"
#include "server/memory/caching_allocator.h"

namespace holdfast {

class HostStaging {
 public:
  // Blocks belong to the host: no device stream reuses one without asking.
  static constexpr StreamId kHost = std::numeric_limits<StreamId>::max();

  // `devices`: the daemon's, by their places; they must outlive it. `shared`:
  // segments that a local client may map. `account`: whose the memory is; null:
  // nobody counts.
  HostStaging(std::vector<Device*> devices, bool shared, size_t limit_bytes,
              std::shared_ptr<MemoryAccount> account);

  // Device memory that an upload fills: a block of `at`'s, for the stream that
  // will copy. What is launched on the session's stream there after the upload
  // sees its bytes.
  static absl::StatusOr<MemoryBlock*> Target(const SessionDevice& at,
                                             size_t bytes);
  // Copies to a Target, from `offset` bytes on; `bytes` may change when it
  // returns.
  absl::Status Upload(const SessionDevice& at, const MemoryBlock& target,
                      absl::string_view bytes, size_t offset = 0);
  // The same from a block of memory(), which its owner may free right away.
  absl::Status UploadBlock(const SessionDevice& at, const MemoryBlock& target,
                           MemoryBlock* block, size_t bytes);
  // Copies int32 or int64 elements by way of memory that no client sees, and
  // tells what is known of them.
  absl::StatusOr<KnownBounds> UploadIntegers(const SessionDevice& at,
                                             const MemoryBlock& target,
                                             const void* host, DType dtype,
                                             size_t bytes);
  // Those that are worth a look, which takes the host a millisecond at most.
  static constexpr size_t kMostIntegerBytes = size_t{8} << 20;
  struct Arrival {
    MemoryBlock* block;  // of memory(); free it there
    StreamId stream;     // the copy's: until it is done, nobody may write there
    uint64_t point;      // once the device has passed it, the bytes are there
  };
  // From `data`, memory of the device.
  absl::StatusOr<Arrival> Download(const SessionDevice& at, const void* data,
                                   size_t bytes);

  // Any thread. What is held already stays.
  void set_limit_bytes(size_t bytes);
  // Gives what is kept for reuse back; that of clients, too, unless
  // `leave_mapped`.
  void ReleaseCached(bool leave_mapped);

  CachingAllocator& memory() { return memory_; }
  const CachingAllocator& memory() const { return memory_; }

 private:
  static absl::Status CopyUp(const SessionDevice& at,
                             CachingAllocator* allocator,
                             const MemoryBlock& target, MemoryBlock* block,
                             size_t bytes, size_t offset = 0);

  const std::vector<Device*> devices_;
  CachingAllocator memory_;
  CachingAllocator unseen_;  // by clients
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_HOST_STAGING_H_
