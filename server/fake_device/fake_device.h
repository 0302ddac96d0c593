// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// FakeDevice: an asynchronous device without hardware, for tests of all that
// lies above a device. Each stream is a thread that runs the CPU's kernels some
// time after they were launched. Its memory cannot be seen by the host: an
// address is off by a constant that makes every use of it fault, and says which
// device's it is; behind it is memory that only the device's own code may use
// (guarded_memory.h). What the device does not copy when it is told to (specs,
// attributes, numbers) it does not see later, and what it does (pinned memory)
// it sees as it is then. Thread-safety: as Device.
#ifndef HOLDFAST_SERVER_FAKE_DEVICE_FAKE_DEVICE_H_
#define HOLDFAST_SERVER_FAKE_DEVICE_FAKE_DEVICE_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "kernels/device.h"
#include "kernels/device_health.h"
#include "kernels/recorder.h"
#include "server/fake_device/fake_stream.h"

namespace holdfast {

// What the kernels' own device can record and fuse (Recorder).
struct Fuser {
  bool (*can_record)(const OpSchema& op);
  size_t (*fusible)(absl::Span<const LaunchRequest> requests);
  absl::Status (*run)(absl::Span<const LaunchRequest> requests);
};

class FakeDevice final : public Device, public Recorder {
 public:
  // Work begins `lag` after it was enqueued, at the earliest. `executor` makes
  // what a stream's kernels run on; without a `fuser` nothing is fused.
  using MakeExecutor = std::unique_ptr<Device> (*)();
  FakeDevice(absl::Duration lag, MakeExecutor executor,
             const Fuser* fuser = nullptr, int index = 0);
  ~FakeDevice() override;

  // The CPU's unless told otherwise: programs meet nothing but its asynchrony.
  absl::string_view name() const override { return name_; }
  std::string description() const override { return description_; }
  // Figures that no other device has.
  DeviceProperties properties() const override {
    return {"fake device",
            index_,
            1,
            2,
            3,
            uint64_t{5} << 40,
            "fake:" + std::to_string(index_)};
  }
  uint64_t FreeBytes() const override { return uint64_t{4} << 40; }
  bool host_memory() const override { return false; }
  absl::Status health() const override { return health_.status(); }

  std::unique_ptr<DeviceMemory> CreateMemory(bool shared) override;
  absl::Status PinHost(void* base, size_t bytes) override;
  void UnpinHost(void* base) override;

  // Its memory is files: handles are paths below /proc.
  MemoryHandleKind handle_kind() const override { return handle_kind_; }
  absl::StatusOr<OpenedMemory> OpenMemory(absl::string_view handle) override;
  void CloseMemory(const OpenedMemory& memory) override;

  absl::StatusOr<StreamId> CreateStream(int priority) override;
  void DestroyStream(StreamId stream) override;
  void SetNumerics(StreamId stream, const Numerics& numerics) override;

  absl::Status Launch(StreamId stream, PhiloxState philox, const Attrs& attrs,
                      absl::Span<const TensorView> inputs,
                      absl::Span<const TensorView> outputs) override;
  absl::Status ComputeSizes(StreamId stream, const Attrs& attrs,
                            absl::Span<const TensorView> inputs,
                            absl::Span<int64_t> sizes) override;
  // ---- Recorder
  bool CanRecord(const OpSchema& op) const override {
    return fuser_ == nullptr || fuser_->can_record(op);
  }
  size_t Fusible(absl::Span<const LaunchRequest> requests) const override {
    return fuser_ == nullptr ? 1 : fuser_->fusible(requests);
  }
  absl::Status LaunchFused(StreamId stream,
                           absl::Span<const LaunchRequest> requests) override;
  absl::Status BeginRecording(StreamId stream) override;
  absl::StatusOr<RecordingId> EndRecording(StreamId stream) override;
  absl::Status Replay(StreamId stream, RecordingId recording,
                      std::optional<PhiloxState> first) override;
  void DropRecording(StreamId stream, RecordingId recording) override;

  // ---- Device
  absl::Status Copy(StreamId stream, CopyKind kind, void* to, const void* from,
                    size_t bytes) override;
  absl::Status CopyFrom(StreamId stream, void* to, Device* source,
                        StreamId source_stream, const void* from,
                        size_t bytes) override;
  absl::Status CopyToHost(StreamId stream, void* host, const void* device,
                          size_t bytes) override;

  uint64_t RecordPoint(StreamId stream) override;
  uint64_t RecordTimedPoint(StreamId stream) override;
  std::optional<int64_t> TakeTime(uint64_t point) override;
  bool PointPassed(uint64_t point) override;
  void WaitPoint(uint64_t point) override;
  absl::Status StreamStatus(StreamId stream) override;
  absl::Status Order(StreamId first, StreamId later) override;
  void TimeWork(StreamId stream, std::optional<uint64_t> tag) override;
  std::vector<WorkTime> TakeWorkTimes(StreamId stream) override;
  absl::Status Synchronize(StreamId stream) override;

  // ---- for tests
  // "cuda": programs take it for a GPU. Before any use.
  void set_name(std::string name) { name_ = std::move(name); }
  void set_description(std::string text) { description_ = std::move(text); }
  // Handles of CUDA's size, for a client with a driver for tests.
  void set_handle_kind(MemoryHandleKind kind) { handle_kind_ = kind; }
  // The device is lost when this op is launched, as a GPU after an illegal
  // memory access, and `told` hears of it.
  void BreakOn(std::string op, DeviceHealth::OnLost told) {
    break_on_ = std::move(op);
    health_.set_on_lost(std::move(told));
  }
  // Recordings with this op cannot be made.
  void RefuseToRecord(std::string op) { unrecordable_ = std::move(op); }
  // What SetNumerics was told last; the defaults if nothing.
  Numerics numerics(StreamId stream);
  StreamId newest_stream();
  // Kernels of all streams take turns, as large ones do on a GPU, and take so
  // much longer each. Before any stream.
  void WorkOneAtATime(absl::Duration longer) {
    engine_ = std::make_unique<FakeEngine>(longer);
  }
  // The stream's work does not begin while it is held.
  void Hold(StreamId stream, bool held);
  size_t recordings();  // that there are
  uint64_t replays();   // so far
  uint64_t launches();  // so far, those of replays aside
  uint64_t fused();     // ops so far that LaunchFused was given
  uint64_t copies();    // so far, from and to the host and between devices

  // ---- for its memory
  // Waits for every stream.
  void SynchronizeAll();
  int index() const { return index_; }

 private:
  // Never null: work on a stream that was destroyed is a mistake of ours.
  std::shared_ptr<FakeStream> Find(StreamId stream);
  // An error: the address is of another device.
  absl::Status CheckOwn(const void* address) const;
  absl::Status CheckOwn(absl::Span<const TensorView> views) const;
  // Where random numbers of the recording that the stream makes begin when it
  // is replayed; null if it makes none.
  std::shared_ptr<const PhiloxState> NotedFirst(StreamId stream);
  // Takes the task if the stream makes a recording.
  bool Note(StreamId stream, const Attrs& attrs, FakeStream::Task* task);

  const absl::Duration lag_;
  const MakeExecutor make_executor_;
  const Fuser* const fuser_;
  const int index_;
  std::string name_ = "cpu";
  std::string description_ = "fake device";
  MemoryHandleKind handle_kind_ = MemoryHandleKind::kFile;
  std::string break_on_;
  std::string unrecordable_;
  DeviceHealth health_;
  std::unique_ptr<FakeEngine> engine_;  // null: streams work side by side
  std::mutex mutex_;                    // guards what follows
  StreamId next_stream_ = 1;
  std::map<StreamId, std::shared_ptr<FakeStream>> streams_;
  std::map<StreamId, Numerics> numerics_;
  struct Noted {
    std::vector<FakeStream::Task> tasks;
    bool whole = true;
    std::shared_ptr<PhiloxState> first = std::make_shared<PhiloxState>();
  };
  std::map<StreamId, Noted> noting_;
  std::map<std::pair<StreamId, RecordingId>, std::shared_ptr<Noted>>
      recordings_;
  RecordingId next_recording_ = 1;
  uint64_t replays_ = 0;
  uint64_t launches_ = 0;
  uint64_t fused_ = 0;
  uint64_t copies_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_FAKE_DEVICE_FAKE_DEVICE_H_
