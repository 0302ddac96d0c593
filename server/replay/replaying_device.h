// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ReplayingDevice: a device that makes recordings, with each stream's recurring
// sequences of launches done as such (launch_replay.h). Launches may wait for
// others to come: until a sequence is complete, until anything else is asked of
// the stream, at the latest until nothing has come for a while.
// Thread-safety: as Device's. One lock keeps launches apart from the points and
// memory of other threads, and from the thread that ends a wait.
#ifndef HOLDFAST_SERVER_REPLAY_REPLAYING_DEVICE_H_
#define HOLDFAST_SERVER_REPLAY_REPLAYING_DEVICE_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kernels/device.h"
#include "kernels/recorder.h"
#include "server/replay/launch_replay.h"

namespace holdfast {

class ReplayingDevice final : public Device {
 public:
  // `recorder` is the device's.
  ReplayingDevice(std::unique_ptr<Device> device, Recorder* recorder,
                  const ReplayOptions& options = {});

  ~ReplayingDevice() override;

  // Begins all that waits.
  void Flush();

  absl::string_view name() const override { return device_->name(); }
  std::string description() const override { return device_->description(); }
  std::vector<std::string> missing_ops() const override {
    return device_->missing_ops();
  }
  DeviceProperties properties() const override { return device_->properties(); }
  uint64_t FreeBytes() const override { return device_->FreeBytes(); }
  ReplayCounts replay_counts() const override {
    return {counters_.replayed, counters_.fused};
  }
  bool host_memory() const override { return device_->host_memory(); }
  absl::Status health() const override { return device_->health(); }

  std::unique_ptr<DeviceMemory> CreateMemory(bool shared) override;
  absl::Status PinHost(void* base, size_t bytes) override {
    return device_->PinHost(base, bytes);
  }
  void UnpinHost(void* base) override { device_->UnpinHost(base); }

  MemoryHandleKind handle_kind() const override {
    return device_->handle_kind();
  }
  absl::StatusOr<OpenedMemory> OpenMemory(absl::string_view handle) override {
    return device_->OpenMemory(handle);
  }
  void CloseMemory(const OpenedMemory& memory) override {
    device_->CloseMemory(memory);
  }

  absl::StatusOr<StreamId> CreateStream(int priority) override;
  void DestroyStream(StreamId stream) override;
  void SetNumerics(StreamId stream, const Numerics& numerics) override;

  void SetStop(StopSignal* stop) override { device_->SetStop(stop); }
  absl::Status Launch(StreamId stream, PhiloxState philox, const Attrs& attrs,
                      absl::Span<const TensorView> inputs,
                      absl::Span<const TensorView> outputs) override;
  absl::Status ComputeSizes(StreamId stream, const Attrs& attrs,
                            absl::Span<const TensorView> inputs,
                            absl::Span<int64_t> sizes) override;
  absl::Status Copy(StreamId stream, CopyKind kind, void* to, const void* from,
                    size_t bytes) override;
  absl::Status CopyFrom(StreamId stream, void* to, Device* source,
                        StreamId source_stream, const void* from,
                        size_t bytes) override;
  Device* Opened(StreamId stream) override;
  absl::Status CopyToHost(StreamId stream, void* host, const void* device,
                          size_t bytes) override;

  uint64_t RecordPoint(StreamId stream) override;
  // Without what is withheld, which stays so.
  uint64_t RecordTimedPoint(StreamId stream) override {
    return device_->RecordTimedPoint(stream);
  }
  std::optional<int64_t> TakeTime(uint64_t point) override {
    return device_->TakeTime(point);
  }
  bool PointPassed(uint64_t point) override {
    return device_->PointPassed(point);
  }
  void WaitPoint(uint64_t point) override { device_->WaitPoint(point); }
  absl::Status StreamStatus(StreamId stream) override;
  absl::Status Order(StreamId first, StreamId later) override;
  // What is withheld may get the tag of what was asked for after it.
  void TimeWork(StreamId stream, std::optional<uint64_t> tag) override {
    device_->TimeWork(stream, tag);
  }
  std::vector<WorkTime> TakeWorkTimes(StreamId stream) override {
    return device_->TakeWorkTimes(stream);
  }
  absl::Status Synchronize(StreamId stream) override;

 private:
  bool MayRecord(const Attrs& attrs) const;
  // REQUIRES: mutex_ held. What is withheld on the stream is launched.
  void Cut(StreamId stream);
  // REQUIRES: mutex_ held.
  void FlushAll();
  void EndWaits();

  const std::unique_ptr<Device> device_;
  Recorder* const recorder_;
  const ReplayOptions options_;
  const std::set<std::string> on_host_;  // ops that the device runs there
  ReplayCounters counters_;
  std::mutex mutex_;  // guards what follows
  std::map<StreamId, LaunchReplay> streams_;
  std::condition_variable changed_;  // stop_, watched_
  bool stop_ = false;
  bool watched_ = false;   // something was withheld since the last look
  uint64_t launches_ = 0;  // so far
  std::thread ender_;      // last: it uses all the rest
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_REPLAY_REPLAYING_DEVICE_H_
