// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/replay/replaying_device.h"

#include <utility>

#include "ops/op_schema.h"

namespace holdfast {
namespace {

std::set<std::string> SetOf(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

// Memory may go, and points be recorded, only behind what was launched.
class ReplayingMemory final : public DeviceMemory {
 public:
  ReplayingMemory(ReplayingDevice* device, std::unique_ptr<DeviceMemory> memory)
      : device_(device), memory_(std::move(memory)) {}

  absl::StatusOr<MemorySegment> AllocateSegment(size_t bytes) override {
    return memory_->AllocateSegment(bytes);
  }
  void FreeSegment(const MemorySegment& segment) override {
    device_->Flush();
    memory_->FreeSegment(segment);
  }
  // Nothing that is held back can be about memory that is new.
  absl::Status Clear(const MemorySegment& segment, StreamId stream) override {
    return memory_->Clear(segment, stream);
  }
  absl::StatusOr<std::string> Export(const MemorySegment& segment) override {
    return memory_->Export(segment);
  }
  uint64_t RecordPoint(StreamId stream) override {
    return device_->RecordPoint(stream);
  }
  bool PointPassed(uint64_t point) override {
    return memory_->PointPassed(point);
  }
  void WaitPoint(uint64_t point) override { memory_->WaitPoint(point); }

 private:
  ReplayingDevice* const device_;
  const std::unique_ptr<DeviceMemory> memory_;
};

}  // namespace

ReplayingDevice::ReplayingDevice(std::unique_ptr<Device> device,
                                 Recorder* recorder,
                                 const ReplayOptions& options)
    : device_(std::move(device)),
      recorder_(recorder),
      options_(options),
      on_host_(SetOf(device_->missing_ops())),
      ender_([this] { EndWaits(); }) {}

ReplayingDevice::~ReplayingDevice() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  ender_.join();
}

void ReplayingDevice::Flush() {
  std::lock_guard<std::mutex> lock(mutex_);
  FlushAll();
}

void ReplayingDevice::FlushAll() {
  for (auto& [id, stream] : streams_) stream.Flush();
}

// A program that pauses waits for nobody's next launch.
void ReplayingDevice::EndWaits() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || watched_; });
    const uint64_t before = launches_;
    changed_.wait_for(lock, absl::ToChronoNanoseconds(options_.linger),
                      [this] { return stop_; });
    if (stop_) return;
    if (launches_ != before) continue;
    FlushAll();
    watched_ = false;
  }
}

void ReplayingDevice::Cut(StreamId stream) {
  const auto it = streams_.find(stream);
  if (it != streams_.end()) it->second.Cut();
}

std::unique_ptr<DeviceMemory> ReplayingDevice::CreateMemory(bool shared) {
  return std::make_unique<ReplayingMemory>(this, device_->CreateMemory(shared));
}

absl::StatusOr<StreamId> ReplayingDevice::CreateStream(int priority) {
  std::lock_guard<std::mutex> lock(mutex_);
  absl::StatusOr<StreamId> stream = device_->CreateStream(priority);
  if (stream.ok()) {
    streams_.try_emplace(*stream, device_.get(), recorder_, *stream, options_,
                         &counters_);
  }
  return stream;
}

void ReplayingDevice::DestroyStream(StreamId stream) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Cut(stream);
    streams_.erase(stream);
  }
  device_->DestroyStream(stream);  // with its recordings
}

// Recordings have the numerics with which they were made.
void ReplayingDevice::SetNumerics(StreamId stream, const Numerics& numerics) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = streams_.find(stream);
  if (it != streams_.end()) it->second.Forget();
  device_->SetNumerics(stream, numerics);
}

// Not what says where random numbers are (without drawing any), waits for its
// data, or has other attributes at each step, as optimizers have.
bool ReplayingDevice::MayRecord(const Attrs& attrs) const {
  const OpSchema& op = attrs.schema();
  return !op.has(kReadsRandomState) &&
         (!op.has(kChecksData) || attrs.data_checked()) &&
         !op.has(kDataShape) && !op.has(kMutates) &&
         on_host_.count(op.name) == 0 && recorder_->CanRecord(op);
}

absl::Status ReplayingDevice::Launch(StreamId stream, PhiloxState philox,
                                     const Attrs& attrs,
                                     absl::Span<const TensorView> inputs,
                                     absl::Span<const TensorView> outputs) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = streams_.find(stream);
  if (it != streams_.end() && MayRecord(attrs)) {
    absl::Status status = it->second.Launch({attrs, inputs, outputs, philox});
    ++launches_;
    if (it->second.withholds() && !watched_) {
      watched_ = true;
      changed_.notify_all();
    }
    return status;
  }
  Cut(stream);
  return device_->Launch(stream, philox, attrs, inputs, outputs);
}

absl::Status ReplayingDevice::ComputeSizes(StreamId stream, const Attrs& attrs,
                                           absl::Span<const TensorView> inputs,
                                           absl::Span<int64_t> sizes) {
  std::lock_guard<std::mutex> lock(mutex_);
  // Sizes that are the device's choice ask nothing of the stream.
  if (!attrs.schema().has(kDeviceSized)) Cut(stream);
  return device_->ComputeSizes(stream, attrs, inputs, sizes);
}

absl::Status ReplayingDevice::Copy(StreamId stream, CopyKind kind, void* to,
                                   const void* from, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  Cut(stream);
  return device_->Copy(stream, kind, to, from, bytes);
}

absl::Status ReplayingDevice::CopyFrom(StreamId stream, void* to,
                                       Device* source, StreamId source_stream,
                                       const void* from, size_t bytes) {
  Device* const opened = source->Opened(source_stream);
  std::lock_guard<std::mutex> lock(mutex_);
  Cut(stream);
  return device_->CopyFrom(stream, to, opened, source_stream, from, bytes);
}

Device* ReplayingDevice::Opened(StreamId stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  Cut(stream);
  return device_->Opened(stream);
}

absl::Status ReplayingDevice::CopyToHost(StreamId stream, void* host,
                                         const void* device, size_t bytes) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Cut(stream);
  }
  return device_->CopyToHost(stream, host, device, bytes);
}

uint64_t ReplayingDevice::RecordPoint(StreamId stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  Cut(stream);
  return device_->RecordPoint(stream);
}

absl::Status ReplayingDevice::StreamStatus(StreamId stream) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = streams_.find(stream);
    if (it != streams_.end()) {
      if (absl::Status s = it->second.TakeStatus(); !s.ok()) return s;
    }
  }
  return device_->StreamStatus(stream);
}

absl::Status ReplayingDevice::Order(StreamId first, StreamId later) {
  std::lock_guard<std::mutex> lock(mutex_);
  Cut(first);
  Cut(later);
  return device_->Order(first, later);
}

absl::Status ReplayingDevice::Synchronize(StreamId stream) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Cut(stream);
  }
  absl::Status status = device_->Synchronize(stream);
  return status.ok() ? StreamStatus(stream) : status;
}

}  // namespace holdfast
