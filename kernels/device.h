// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Device: what executes kernels and holds memory. Asynchronous by contract:
// Launch and Copy enqueue on a stream and return, work of one stream runs in
// order, a point marks what was enqueued so far. The CPU device does its work
// inside the call. Other devices come from shared libraries that the daemon
// opens at start (device_plugin.h).
//
// One session has one stream. Memory is freed in the stream's order: a block
// that is free again may be used by whatever is enqueued next on that stream.
// Thread-safety: points and memory from any thread, the rest from the worker
// thread only.
#ifndef HOLDFAST_KERNELS_DEVICE_H_
#define HOLDFAST_KERNELS_DEVICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/device_memory.h"
#include "kernels/kernel.h"
#include "kernels/numerics.h"

namespace holdfast {

// What a program may ask about a GPU; of other devices nothing is known.
struct DeviceProperties {
  std::string name;  // "NVIDIA H200"
  int index = 0;
  int major = 0, minor = 0;  // compute capability
  int multi_processors = 0;
  uint64_t total_bytes = 0;
  std::string bus_id;  // PCI's, which every process knows it by
};

class Device {
 public:
  virtual ~Device() = default;

  virtual absl::string_view name() const = 0;  // "cpu"
  // For the log: "NVIDIA H200, 140 GiB, compute capability 9.0".
  virtual std::string description() const = 0;
  // Without a name: there is nothing to tell.
  virtual DeviceProperties properties() const { return {}; }
  // Memory that nobody has taken, of all processes together; any thread.
  virtual uint64_t FreeBytes() const { return 0; }
  // Launches that were done as parts of recordings so far, and those of them
  // that were one kernel with others; any thread.
  struct ReplayCounts {
    uint64_t replayed = 0;
    uint64_t fused = 0;
  };
  virtual ReplayCounts replay_counts() const { return {}; }
  // Ops that have no kernel here: the host's runs them, after copies.
  virtual std::vector<std::string> missing_ops() const { return {}; }
  // Whether host code reads and writes device memory, once the work that uses
  // it is done. If not, bytes come and go by Copy.
  virtual bool host_memory() const = 0;

  // Why the device is of no use any more, to anybody; OK while it is. Any
  // thread.
  virtual absl::Status health() const { return absl::OkStatus(); }

  // Memory for one session. `shared`: segments that a local client may map;
  // only where host_memory().
  virtual std::unique_ptr<DeviceMemory> CreateMemory(bool shared) = 0;
  // Makes host memory fit for Copy on any device of the library, and ends that
  // (waiting for this one's copies that may still use it). Devices with
  // host_memory() need neither.
  virtual absl::Status PinHost(void* base, size_t bytes) = 0;
  virtual void UnpinHost(void* base) = 0;

  // What DeviceMemory::Export and OpenMemory deal in.
  virtual MemoryHandleKind handle_kind() const {
    return MemoryHandleKind::kNone;
  }
  // Opens memory of another process on this device, which may read it until
  // CloseMemory, after the work that does. An error: the bytes are no handle of
  // such memory, and the device is as it was.
  struct OpenedMemory {
    void* base = nullptr;
    size_t bytes = 0;  // from `base` on
  };
  virtual absl::StatusOr<OpenedMemory> OpenMemory(
      absl::string_view /*handle*/) {
    return absl::UnimplementedError(
        "[memory] this device opens no memory of other processes");
  }
  virtual void CloseMemory(const OpenedMemory& /*memory*/) {}

  // Where work of several streams waits for the device, that of a higher
  // `priority` goes first, as far as the device knows any; 0: the usual one.
  virtual absl::StatusOr<StreamId> CreateStream(int priority) = 0;
  // Waits for what is enqueued.
  virtual void DestroyStream(StreamId stream) = 0;
  // For the ops that are launched on the stream from now on. Devices that have
  // nothing to choose pass over it.
  virtual void SetNumerics(StreamId /*stream*/, const Numerics& /*numerics*/) {}

  // What may stop the launches from now on, which outlives them; null: nothing.
  // Devices whose kernels nothing stops pass over it.
  virtual void SetStop(StopSignal* /*stop*/) {}

  // Enqueues one kernel; views, specs and attributes may go when it returns.
  // An op that checks its data (kChecksData) returns its verdict, unless that
  // is known already (Attrs::data_checked); other errors
  // that are known at once (a kernel that is missing, no scratch memory) are
  // returned as well, later ones are the stream's status.
  virtual absl::Status Launch(StreamId stream, PhiloxState philox,
                              const Attrs& attrs,
                              absl::Span<const TensorView> inputs,
                              absl::Span<const TensorView> outputs) = 0;
  // The sizes that only the inputs' elements or the device tell (SizesFn,
  // kernels/kernel.h); waits for elements. The op's own Launch follows, and
  // nothing of the stream's between the two.
  virtual absl::Status ComputeSizes(StreamId stream, const Attrs& attrs,
                                    absl::Span<const TensorView> inputs,
                                    absl::Span<int64_t> sizes) = 0;

  // Enqueues a copy between device memory and pinned host memory, which stays
  // as it is until the copy is done.
  enum class CopyKind { kToDevice, kToHost };
  virtual absl::Status Copy(StreamId stream, CopyKind kind, void* to,
                            const void* from, size_t bytes) = 0;
  // Enqueues a copy from another device of the same library, on both streams:
  // it begins after what `source_stream` has been given, and what that is given
  // next begins after it.
  virtual absl::Status CopyFrom(StreamId stream, void* to, Device* source,
                                StreamId source_stream, const void* from,
                                size_t bytes) = 0;
  // For CopyFrom: the device as its library made it, whose `stream` has been
  // given all that this one's has.
  virtual Device* Opened(StreamId /*stream*/) { return this; }
  // Waits for the stream, then copies to any host memory.
  virtual absl::Status CopyToHost(StreamId stream, void* host,
                                  const void* device, size_t bytes) = 0;

  // A point of `stream`: everything enqueued so far. 0: it is done already.
  virtual uint64_t RecordPoint(StreamId stream) = 0;
  // The same of what was given to the device's queue, which may be less; its
  // time is to be asked for.
  virtual uint64_t RecordTimedPoint(StreamId stream) {
    return RecordPoint(stream);
  }
  // When a timed point passed, in nanoseconds of the steady clock, as one clock
  // of the device tells for all streams. Asked for once, when it has passed.
  // Nothing: the device cannot tell.
  virtual std::optional<int64_t> TakeTime(uint64_t /*point*/) {
    return std::nullopt;
  }
  virtual bool PointPassed(uint64_t point) = 0;
  virtual void WaitPoint(uint64_t point) = 0;

  // Why the stream's work failed after its launch, if it did. Does not wait.
  virtual absl::Status StreamStatus(StreamId stream) = 0;
  // What is enqueued on `later` from now on begins when what `first` has now is
  // done. Does not wait. A stream that was destroyed is done.
  virtual absl::Status Order(StreamId /*first*/, StreamId /*later*/) {
    return absl::OkStatus();
  }
  // Blocks until everything enqueued on `stream` is done; its status.
  virtual absl::Status Synchronize(StreamId stream) = 0;

  // ---- for profiles
  // When work of a stream began and ended, by the steady clock.
  struct WorkTime {
    std::string name;  // of the op, or "upload" and the like
    uint64_t tag = 0;
    int64_t start_ns = 0;
    int64_t duration_ns = 0;
  };
  // Keeps the times of what is enqueued on the stream from now on, under `tag`;
  // nothing: keeps none. Devices that work inside the call have nothing to
  // tell.
  virtual void TimeWork(StreamId /*stream*/, std::optional<uint64_t> /*tag*/) {}
  // Moves the times of what is done, in the stream's order.
  virtual std::vector<WorkTime> TakeWorkTimes(StreamId /*stream*/) {
    return {};
  }
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_DEVICE_H_
