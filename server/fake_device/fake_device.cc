// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/fake_device/fake_device.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/number_operand.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "server/fake_device/fake_stream.h"
#include "server/memory/host_memory.h"

namespace holdfast {
namespace {

// Neither address space of the processor reaches so far: any use faults.
constexpr uintptr_t kOffset = uintptr_t{1} << 62;

void* ToDevice(void* host) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(host) ^ kOffset);
}
void* ToHost(const void* device) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(device) ^ kOffset);
}

// Whether the kernel's verdict depends on elements.
bool ChecksData(const OpSchema& op) {
  return op.has(kChecksData) || op.id == OpId::bernoulli ||
         op.id == OpId::poisson;
}

constexpr int kPointBits = 40;  // of a point's count; above it the stream

// Views with all that they point at but the elements.
class OwnedViews {
 public:
  explicit OwnedViews(absl::Span<const TensorView> views) {
    specs_.reserve(views.size());
    numbers_.reserve(views.size());
    for (const TensorView& view : views) {
      if (!view.present()) {
        views_.emplace_back();
        continue;
      }
      specs_.push_back(*view.spec);
      void* data = nullptr;
      if (IsNumber(view)) {
        Number& number = numbers_.emplace_back();
        std::memcpy(number.bytes, view.data, ItemSize(view.spec->dtype));
        data = number.bytes;
      } else {
        data = ToHost(view.data);
      }
      views_.push_back({data, &specs_.back()});
    }
  }
  OwnedViews(const OwnedViews&) = delete;
  OwnedViews& operator=(const OwnedViews&) = delete;

  absl::Span<const TensorView> get() const { return views_; }

 private:
  struct Number {
    alignas(16) char bytes[16];
  };
  std::vector<TensorSpec> specs_;
  std::vector<Number> numbers_;
  std::vector<TensorView> views_;
};

class FakeMemory final : public DeviceMemory {
 public:
  explicit FakeMemory(FakeDevice* device) : device_(device) {}

  absl::StatusOr<MemorySegment> AllocateSegment(size_t bytes) override {
    absl::StatusOr<MemorySegment> segment = memory_.AllocateSegment(bytes);
    if (segment.ok()) segment->base = ToDevice(segment->base);
    return segment;
  }
  void FreeSegment(const MemorySegment& segment) override {
    device_->SynchronizeAll();
    MemorySegment host = segment;
    host.base = ToHost(segment.base);
    memory_.FreeSegment(host);
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
  HostMemory memory_{/*shared=*/false};
};

}  // namespace

FakeDevice::FakeDevice(absl::Duration lag, MakeExecutor executor)
    : lag_(lag), make_executor_(executor) {}
FakeDevice::~FakeDevice() = default;

std::unique_ptr<DeviceMemory> FakeDevice::CreateMemory(bool) {
  return std::make_unique<FakeMemory>(this);
}

absl::Status FakeDevice::PinHost(void* base, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  pinned_[static_cast<const char*>(base)] = bytes;
  return absl::OkStatus();
}

void FakeDevice::UnpinHost(void* base) {
  SynchronizeAll();
  std::lock_guard<std::mutex> lock(mutex_);
  pinned_.erase(static_cast<const char*>(base));
}

bool FakeDevice::IsPinned(const void* host, size_t bytes) {
  const char* begin = static_cast<const char*>(host);
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = pinned_.upper_bound(begin);
  if (it == pinned_.begin()) return false;
  --it;
  return begin + bytes <= it->first + it->second;
}

absl::StatusOr<StreamId> FakeDevice::CreateStream() {
  std::lock_guard<std::mutex> lock(mutex_);
  streams_[next_stream_] = std::make_shared<FakeStream>(make_executor_(), lag_);
  return next_stream_++;
}

void FakeDevice::DestroyStream(StreamId stream) {
  std::shared_ptr<FakeStream> last;  // joined outside the lock
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  last = std::move(it->second);
  streams_.erase(it);
}

std::shared_ptr<FakeStream> FakeDevice::Find(StreamId stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  return streams_.at(stream);
}

absl::Status FakeDevice::Launch(StreamId stream, PhiloxState philox,
                                const Attrs& attrs,
                                absl::Span<const TensorView> inputs,
                                absl::Span<const TensorView> outputs) {
  const std::shared_ptr<FakeStream> on = Find(stream);
  auto in = std::make_shared<OwnedViews>(inputs);
  auto out = std::make_shared<OwnedViews>(outputs);
  if (ChecksData(attrs.schema())) {
    on->WaitFor(on->enqueued());
    return on->cpu().Launch(0, philox, attrs, in->get(), out->get());
  }
  on->Enqueue([philox, attrs, in, out](Device& cpu) {
    return cpu.Launch(0, philox, attrs, in->get(), out->get());
  });
  return absl::OkStatus();
}

absl::Status FakeDevice::ComputeSizes(StreamId stream, const Attrs& attrs,
                                      absl::Span<const TensorView> inputs,
                                      absl::Span<int64_t> sizes) {
  const std::shared_ptr<FakeStream> on = Find(stream);
  on->WaitFor(on->enqueued());
  const OwnedViews in(inputs);
  return on->cpu().ComputeSizes(0, attrs, in.get(), sizes);
}

absl::Status FakeDevice::Copy(StreamId stream, CopyKind kind, void* to,
                              const void* from, size_t bytes) {
  const bool up = kind == CopyKind::kToDevice;
  if (!IsPinned(up ? from : to, bytes)) {
    return absl::InternalError("[fake] a copy must use pinned host memory");
  }
  if (up) {
    to = ToHost(to);
  } else {
    from = ToHost(from);
  }
  Find(stream)->Enqueue([to, from, bytes](Device&) {
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  });
  return absl::OkStatus();
}

absl::Status FakeDevice::CopyToHost(StreamId stream, void* host,
                                    const void* device, size_t bytes) {
  absl::Status status = Synchronize(stream);
  if (status.ok() && bytes > 0) std::memcpy(host, ToHost(device), bytes);
  return status;
}

uint64_t FakeDevice::RecordPoint(StreamId stream) {
  return uint64_t{stream} << kPointBits | Find(stream)->enqueued();
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
  return Find(stream)->TakeStatus();
}

absl::Status FakeDevice::Synchronize(StreamId stream) {
  const std::shared_ptr<FakeStream> on = Find(stream);
  on->WaitFor(on->enqueued());
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
