// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionDevices: the daemon's devices as one session uses them: on each
// streams and memory of its own. The first is the session's home, where what it
// exchanges with other sessions lies, and tensors of "cpu" (ops/place_op.h).
// Another one costs nothing until a tensor lies there.
// Thread-safety: Find and home on the worker thread only, the rest from any.
#ifndef HOLDFAST_SERVER_EXEC_SESSION_DEVICES_H_
#define HOLDFAST_SERVER_EXEC_SESSION_DEVICES_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "server/exec/copy_streams.h"
#include "server/memory/caching_allocator.h"

namespace holdfast {

struct SessionDevice {
  Device* device = nullptr;
  StreamId stream = 0;
  CachingAllocator* memory = nullptr;
  // Null, or memory that no client can see. A local client can write tensor
  // memory at any time, so integers that kernels use as indices are copied
  // there before they are checked.
  CachingAllocator* guard = nullptr;
  bool asynchronous = false;      // work is done after its launch
  CopyStreams* copies = nullptr;  // beside `stream`; null: not asynchronous
  int place() const { return memory->place(); }
};

class SessionDevices {
 public:
  // `home` stays its owner's, but for its copy streams, which are made here.
  // The devices must outlive this.
  SessionDevices(SessionDevice home, std::vector<Device*> further,
                 size_t limit_bytes, std::shared_ptr<MemoryAccount> account,
                 int priority);
  // Waits for what is enqueued, on home for copies alone.
  ~SessionDevices();

  bool several() const { return !further_.empty(); }
  SessionDevice& home() { return home_; }
  // Where tensors of the device lie; OutOfRange where the daemon has none.
  absl::StatusOr<SessionDevice*> Find(int device);
  // Of a place (DevicePlace) but home that was used; null: none.
  std::shared_ptr<CachingAllocator> memory(int place) const;
  // From now on a client can write memory of the place, which was used
  // (SessionDevice::guard). Home's guard is its owner's.
  void GuardFurther(int place);
  // Those that were used, home aside, by their places.
  std::vector<std::pair<int, std::shared_ptr<CachingAllocator>>> opened() const;

  // A point of each stream (Device::RecordPoint), those of copies too.
  using Points = std::vector<std::pair<Device*, uint64_t>>;
  Points RecordPoints();
  Points RecordTimedPoints();  // Device::RecordTimedPoint, of kernels' streams
  // The first error of a stream (Device::StreamStatus). Does not wait.
  absl::Status status();
  void SetNumerics(const Numerics& numerics);
  // Device::SetStop, of each that was used and those that will be.
  void SetStop(StopSignal* stop);
  void TimeWork(std::optional<uint64_t> tag);
  // Of each that was used, home first: its place and itself.
  void ForEach(absl::FunctionRef<void(int, const SessionDevice&)> visit) const;
  void set_limit_bytes(size_t bytes);
  // Gives what home does not use of its memory back to the devices.
  void ReleaseCached();
  void ResetPeak();

 private:
  struct Further {
    SessionDevice device;
    std::shared_ptr<CachingAllocator> memory;
    std::shared_ptr<CachingAllocator> guard;  // null: nobody writes memory
    std::unique_ptr<CopyStreams> copies;
  };
  absl::Status Open(int place);
  // Of each that was used: its streams, copies' last.
  void ForEachStream(absl::FunctionRef<void(Device*, StreamId)> visit) const;

  SessionDevice home_;
  std::optional<CopyStreams> home_copies_;
  const std::vector<Device*> further_;
  const std::shared_ptr<MemoryAccount> account_;
  const int priority_;  // of streams
  Numerics numerics_;   // worker thread, like what follows
  StopSignal* stop_ = nullptr;
  std::optional<uint64_t> tag_;
  mutable std::mutex mutex_;  // guards what follows
  size_t limit_bytes_;
  // By place; changed by the worker thread alone.
  std::map<int, Further> opened_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_SESSION_DEVICES_H_
