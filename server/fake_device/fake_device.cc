// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/fake_device/fake_device.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/number_operand.h"
#include "kernels/owned_views.h"
#include "ops/op_schema.h"
#include "server/fake_device/fake_stream.h"
#include "server/fake_device/guarded_memory.h"
#include "server/fake_device/pinned_ranges.h"
#include "server/memory/host_memory.h"

namespace holdfast {
namespace {

constexpr int kLeftOver = 0xa5;  // every byte of memory that was not cleared

constexpr int kPointBits = 40;  // of a point's count; above it the stream

class FakeMemory final : public DeviceMemory {
 public:
  explicit FakeMemory(FakeDevice* device) : device_(device) {}

  absl::StatusOr<MemorySegment> AllocateSegment(size_t bytes) override {
    absl::StatusOr<MemorySegment> segment = memory_.AllocateSegment(bytes);
    if (!segment.ok()) return segment;
    // A GPU's memory is what somebody left there.
    std::memset(segment->base, kLeftOver, segment->bytes);
    Guard(segment->base, segment->bytes, PROT_READ | PROT_WRITE);
    segment->base = ToDevice(segment->base, device_->index());
    return segment;
  }
  // At once, as on a GPU: who uses it first may be on another stream.
  absl::Status Clear(const MemorySegment& segment, StreamId) override {
    const KernelScope scope;
    std::memset(ToGuarded(segment.base), 0, segment.bytes);
    return absl::OkStatus();
  }
  void FreeSegment(const MemorySegment& segment) override {
    device_->SynchronizeAll();
    MemorySegment host = segment;
    host.base = ToGuarded(segment.base);
    Unguard(host.base);
    memory_.FreeSegment(host);
  }
  absl::StatusOr<std::string> Export(const MemorySegment& segment) override {
    constexpr size_t kCudaBytes = 64;
    std::string path = absl::StrCat("/proc/", getpid(), "/fd/", segment.fd);
    if (device_->handle_kind() == MemoryHandleKind::kCudaIpc) {
      path.resize(kCudaBytes);
    }
    return path;
  }
  uint64_t RecordPoint(StreamId stream) override {
    return device_->RecordPoint(stream);
  }
  bool PointPassed(uint64_t point) override {
    return device_->PointPassed(point);
  }
  void WaitPoint(uint64_t point) override { device_->WaitPoint(point); }

 private:
  FakeDevice* const device_;
  HostMemory memory_{/*shared=*/true};  // in files, to be exported
};

}  // namespace

FakeDevice::FakeDevice(absl::Duration lag, MakeExecutor executor,
                       const Fuser* fuser, int index)
    : lag_(lag), make_executor_(executor), fuser_(fuser), index_(index) {}
FakeDevice::~FakeDevice() = default;

std::unique_ptr<DeviceMemory> FakeDevice::CreateMemory(bool) {
  return std::make_unique<FakeMemory>(this);
}

absl::Status FakeDevice::PinHost(void* base, size_t bytes) {
  PinnedRanges::Get().Add(base, bytes);
  return absl::OkStatus();
}

void FakeDevice::UnpinHost(void* base) {
  SynchronizeAll();
  PinnedRanges::Get().Remove(base);
}

// As a GPU's driver does: what is no other process's memory is refused.
absl::StatusOr<Device::OpenedMemory> FakeDevice::OpenMemory(
    absl::string_view handle) {
  handle = handle.substr(0, handle.find('\0'));
  const absl::Status refusal = absl::InvalidArgumentError(
      "[fake] no other process's memory has that handle");
  if (!absl::StartsWith(handle, "/proc/") || absl::StrContains(handle, "..") ||
      absl::StartsWith(handle, absl::StrCat("/proc/", getpid(), "/"))) {
    return refusal;
  }
  const int fd = open(std::string(handle).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return refusal;
  struct stat info = {};
  const int seals = fcntl(fd, F_GET_SEALS);  // an error: no memory
  void* base = MAP_FAILED;
  if (seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &info) == 0 &&
      info.st_size > 0) {
    base = mmap(nullptr, info.st_size, PROT_READ, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (base == MAP_FAILED) return refusal;
  Guard(base, info.st_size, PROT_READ);
  return OpenedMemory{ToDevice(base, index_),
                      static_cast<size_t>(info.st_size)};
}

void FakeDevice::CloseMemory(const OpenedMemory& memory) {
  void* const base = ToGuarded(memory.base);
  Unguard(base);
  munmap(base, memory.bytes);
}

absl::Status FakeDevice::CheckOwn(const void* address) const {
  const uintptr_t high =
      reinterpret_cast<uintptr_t>(address) >> kDeviceIndexBit;
  const uintptr_t own = kDeviceOffset >> kDeviceIndexBit | uintptr_t(index_);
  if (high == own) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("[fake] device ", index_, " uses memory of device ",
                   high & ~(kDeviceOffset >> kDeviceIndexBit)));
}

absl::Status FakeDevice::CheckOwn(absl::Span<const TensorView> views) const {
  for (const TensorView& view : views) {
    if (!view.present() || IsNumber(view)) continue;
    absl::Status s = CheckOwn(view.data);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<StreamId> FakeDevice::CreateStream(int) {
  std::lock_guard<std::mutex> lock(mutex_);
  streams_[next_stream_] =
      std::make_shared<FakeStream>(make_executor_(), lag_, engine_.get());
  return next_stream_++;
}

void FakeDevice::DestroyStream(StreamId stream) {
  std::shared_ptr<FakeStream> last;  // joined outside the lock
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  last = std::move(it->second);
  streams_.erase(it);
  numerics_.erase(stream);
  const auto end = recordings_.lower_bound({stream + 1, 0});
  recordings_.erase(recordings_.lower_bound({stream, 0}), end);
}

void FakeDevice::SetNumerics(StreamId stream, const Numerics& numerics) {
  Find(stream)->Enqueue("", [numerics](Device& cpu) {
    cpu.SetNumerics(0, numerics);
    return absl::OkStatus();
  });
  std::lock_guard<std::mutex> lock(mutex_);
  numerics_[stream] = numerics;
}

Numerics FakeDevice::numerics(StreamId stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  return numerics_[stream];
}

std::shared_ptr<FakeStream> FakeDevice::Find(StreamId stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  return streams_.at(stream);
}

absl::Status FakeDevice::Launch(StreamId stream, PhiloxState philox,
                                const Attrs& attrs,
                                absl::Span<const TensorView> inputs,
                                absl::Span<const TensorView> outputs) {
  if (!break_on_.empty() && attrs.schema().name == break_on_) {
    health_.Lose(absl::DataLossError(absl::StrCat(
        "[fake] one of ", break_on_, ": the device is lost. Connect again.")));
  }
  if (absl::Status s = health_.status(); !s.ok()) return s;
  if (absl::Status s = CheckOwn(inputs); !s.ok()) return s;
  if (absl::Status s = CheckOwn(outputs); !s.ok()) return s;
  const std::shared_ptr<FakeStream> on = Find(stream);
  auto in = std::make_shared<OwnedViews>(inputs, &ToGuarded);
  auto out = std::make_shared<OwnedViews>(outputs, &ToGuarded);
  FakeStream::Task task = [philox, first = NotedFirst(stream), attrs, in,
                           out](Device& cpu) {
    PhiloxState at = philox;
    if (first != nullptr) at = {first->seed, first->offset + philox.offset};
    return cpu.Launch(0, at, attrs, in->get(), out->get());
  };
  if (Note(stream, attrs, &task)) return absl::OkStatus();
  if (attrs.schema().has(kChecksData) && !attrs.data_checked()) {
    on->WaitFor(on->enqueued());
    const KernelScope scope;
    return on->cpu().Launch(0, philox, attrs, in->get(), out->get());
  }
  on->Enqueue(attrs.schema().name, std::move(task));
  return absl::OkStatus();
}

namespace {

struct OwnedRequest {
  explicit OwnedRequest(const LaunchRequest& request)
      : attrs(request.attrs),
        inputs(request.inputs, &ToGuarded),
        outputs(request.outputs, &ToGuarded) {}
  Attrs attrs;
  OwnedViews inputs, outputs;
};

}  // namespace

absl::Status FakeDevice::LaunchFused(StreamId stream,
                                     absl::Span<const LaunchRequest> requests) {
  if (absl::Status s = health_.status(); !s.ok()) return s;
  auto owned = std::make_shared<std::vector<OwnedRequest>>();
  owned->reserve(requests.size());
  for (const LaunchRequest& request : requests) owned->emplace_back(request);
  FakeStream::Task task = [owned, fuser = fuser_](Device&) {
    std::vector<LaunchRequest> all;
    for (const OwnedRequest& one : *owned) {
      all.push_back({one.attrs, one.inputs.get(), one.outputs.get()});
    }
    return fuser->run(all);
  };
  {
    std::lock_guard<std::mutex> lock(mutex_);
    fused_ += requests.size();
  }
  if (Note(stream, requests[0].attrs, &task)) return absl::OkStatus();
  Find(stream)->Enqueue("fused", std::move(task));
  return absl::OkStatus();
}

uint64_t FakeDevice::fused() {
  std::lock_guard<std::mutex> lock(mutex_);
  return fused_;
}

// ---- recordings

std::shared_ptr<const PhiloxState> FakeDevice::NotedFirst(StreamId stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = noting_.find(stream);
  return it == noting_.end() ? nullptr : it->second.first;
}

bool FakeDevice::Note(StreamId stream, const Attrs& attrs,
                      FakeStream::Task* task) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = noting_.find(stream);
  if (it == noting_.end()) {
    ++launches_;
    return false;
  }
  // A GPU's stream has no answers while it notes, and its kernels no host.
  const OpSchema& op = attrs.schema();
  if ((op.has(kChecksData) && !attrs.data_checked()) || !CanRecord(op) ||
      op.name == unrecordable_) {
    it->second.whole = false;
  }
  it->second.tasks.push_back(std::move(*task));
  return true;
}

absl::Status FakeDevice::BeginRecording(StreamId stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  noting_[stream] = {};
  return absl::OkStatus();
}

absl::StatusOr<Recorder::RecordingId> FakeDevice::EndRecording(
    StreamId stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto noted = noting_.extract(stream);
  if (noted.empty() || !noted.mapped().whole) {
    return absl::FailedPreconditionError("[fake] an op cannot be recorded");
  }
  recordings_[{stream, next_recording_}] =
      std::make_shared<Noted>(std::move(noted.mapped()));
  return next_recording_++;
}

absl::Status FakeDevice::Replay(StreamId stream, RecordingId recording,
                                std::optional<PhiloxState> first) {
  if (absl::Status s = health_.status(); !s.ok()) return s;
  std::shared_ptr<Noted> noted;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    noted = recordings_.at({stream, recording});
    ++replays_;
  }
  Find(stream)->Enqueue("recording", [noted, first](Device& cpu) {
    if (first) *noted->first = *first;
    absl::Status error;
    for (const FakeStream::Task& task : noted->tasks) {
      absl::Status status = task(cpu);
      if (error.ok()) error = std::move(status);
    }
    return error;
  });
  return absl::OkStatus();
}

void FakeDevice::DropRecording(StreamId stream, RecordingId recording) {
  std::lock_guard<std::mutex> lock(mutex_);
  recordings_.erase({stream, recording});
}

size_t FakeDevice::recordings() {
  std::lock_guard<std::mutex> lock(mutex_);
  return recordings_.size();
}

uint64_t FakeDevice::replays() {
  std::lock_guard<std::mutex> lock(mutex_);
  return replays_;
}

uint64_t FakeDevice::launches() {
  std::lock_guard<std::mutex> lock(mutex_);
  return launches_;
}

uint64_t FakeDevice::copies() {
  std::lock_guard<std::mutex> lock(mutex_);
  return copies_;
}

absl::Status FakeDevice::ComputeSizes(StreamId stream, const Attrs& attrs,
                                      absl::Span<const TensorView> inputs,
                                      absl::Span<int64_t> sizes) {
  const std::shared_ptr<FakeStream> on = Find(stream);
  on->WaitFor(on->enqueued());
  const OwnedViews in(inputs, &ToGuarded);
  const KernelScope scope;
  return on->cpu().ComputeSizes(0, attrs, in.get(), sizes);
}

absl::Status FakeDevice::Copy(StreamId stream, CopyKind kind, void* to,
                              const void* from, size_t bytes) {
  const bool up = kind == CopyKind::kToDevice;
  const void* const host = up ? from : to;
  absl::Status s = CheckOwn(up ? to : from);
  if (s.ok()) s = PinnedRanges::Get().Check(host, bytes);
  if (!s.ok()) return s;
  if (up) {
    to = ToGuarded(to);
  } else {
    from = ToGuarded(from);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++copies_;
  }
  Find(stream)->Enqueue(
      up ? "upload" : "download", [to, from, host, bytes](Device&) {
        // Still: it stays until the copy is done.
        absl::Status pinned = PinnedRanges::Get().Check(host, bytes);
        if (pinned.ok()) std::memcpy(to, from, bytes);
        return pinned;
      });
  return absl::OkStatus();
}

namespace {

// What `later` is given from now on waits for what `first` has now.
void WaitFor(const std::shared_ptr<FakeStream>& first, FakeStream* later) {
  later->Enqueue("", [first, point = first->enqueued()](Device&) {
    first->WaitFor(point);
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status FakeDevice::CopyFrom(StreamId stream, void* to, Device* source,
                                  StreamId source_stream, const void* from,
                                  size_t bytes) {
  FakeDevice* const other =
      static_cast<FakeDevice*>(source->Opened(source_stream));
  if (absl::Status s = CheckOwn(to); !s.ok()) return s;
  if (absl::Status s = other->CheckOwn(from); !s.ok()) return s;
  const std::shared_ptr<FakeStream> reader = Find(stream);
  const std::shared_ptr<FakeStream> writer = other->Find(source_stream);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++copies_;
  }
  reader->Enqueue("copy between devices",
                  [to = ToGuarded(to), from = ToGuarded(from), bytes, writer,
                   point = writer->enqueued()](Device&) {
                    writer->WaitFor(point);
                    std::memcpy(to, from, bytes);
                    return absl::OkStatus();
                  });
  WaitFor(reader, writer.get());
  return absl::OkStatus();
}

absl::Status FakeDevice::Order(StreamId first, StreamId later) {
  std::shared_ptr<FakeStream> before;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = streams_.find(first);
    if (it == streams_.end()) return absl::OkStatus();
    before = it->second;
  }
  WaitFor(before, Find(later).get());
  return absl::OkStatus();
}

StreamId FakeDevice::newest_stream() {
  std::lock_guard<std::mutex> lock(mutex_);
  return next_stream_ - 1;
}

void FakeDevice::Hold(StreamId stream, bool held) { Find(stream)->Hold(held); }

void FakeDevice::TimeWork(StreamId stream, std::optional<uint64_t> tag) {
  Find(stream)->TimeWork(tag);
}

std::vector<Device::WorkTime> FakeDevice::TakeWorkTimes(StreamId stream) {
  return Find(stream)->TakeWorkTimes();
}

absl::Status FakeDevice::CopyToHost(StreamId stream, void* host,
                                    const void* device, size_t bytes) {
  absl::Status status = Synchronize(stream);
  const KernelScope scope;
  if (status.ok() && bytes > 0) std::memcpy(host, ToGuarded(device), bytes);
  return status;
}

uint64_t FakeDevice::RecordPoint(StreamId stream) {
  std::shared_ptr<FakeStream> on;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = streams_.find(stream);
    if (it == streams_.end()) return 0;  // it waited when it was destroyed
    on = it->second;
  }
  return uint64_t{stream} << kPointBits | on->enqueued();
}

uint64_t FakeDevice::RecordTimedPoint(StreamId stream) {
  const uint64_t point = Find(stream)->RecordTimed();
  return uint64_t{stream} << kPointBits | point;
}

std::optional<int64_t> FakeDevice::TakeTime(uint64_t point) {
  std::shared_ptr<FakeStream> on;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = streams_.find(point >> kPointBits);
    if (it == streams_.end()) return std::nullopt;
    on = it->second;
  }
  return on->TakeTime(point & ((uint64_t{1} << kPointBits) - 1));
}

bool FakeDevice::PointPassed(uint64_t point) {
  std::shared_ptr<FakeStream> on;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = streams_.find(point >> kPointBits);
    if (it == streams_.end()) return true;  // it waited when it was destroyed
    on = it->second;
  }
  return on->Passed(point & ((uint64_t{1} << kPointBits) - 1));
}

void FakeDevice::WaitPoint(uint64_t point) {
  if (PointPassed(point)) return;
  Find(point >> kPointBits)->WaitFor(point & ((uint64_t{1} << kPointBits) - 1));
}

absl::Status FakeDevice::StreamStatus(StreamId stream) {
  if (absl::Status s = health_.status(); !s.ok()) return s;
  return Find(stream)->TakeStatus();
}

absl::Status FakeDevice::Synchronize(StreamId stream) {
  const std::shared_ptr<FakeStream> on = Find(stream);
  on->WaitFor(on->enqueued());
  if (absl::Status s = health_.status(); !s.ok()) return s;
  return on->TakeStatus();
}

void FakeDevice::SynchronizeAll() {
  std::vector<std::shared_ptr<FakeStream>> all;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [id, stream] : streams_) all.push_back(stream);
  }
  for (const auto& stream : all) stream->WaitFor(stream->enqueued());
}

}  // namespace holdfast
