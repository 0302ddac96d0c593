// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/session_devices.h"

#include "absl/strings/str_cat.h"
#include "ops/place_op.h"

namespace holdfast {

SessionDevices::SessionDevices(SessionDevice home, std::vector<Device*> further,
                               size_t limit_bytes,
                               std::shared_ptr<MemoryAccount> account,
                               int priority)
    : home_(home),
      further_(std::move(further)),
      account_(std::move(account)),
      priority_(priority),
      limit_bytes_(limit_bytes) {
  if (home_.asynchronous) {
    home_copies_.emplace(home_.device, home_.stream, priority_);
    home_.copies = &*home_copies_;
  }
}

SessionDevices::~SessionDevices() {
  for (auto& [number, one] : opened_) {
    one.device.device->DestroyStream(one.device.stream);
  }
}

absl::StatusOr<SessionDevice*> SessionDevices::Find(int device) {
  if (device == 0) return &home_;
  const bool none = home_.device->name() == "cpu";
  const int place = DevicePlace(device);
  const int count = none ? 0 : 1 + static_cast<int>(further_.size());
  if (place >= count) {
    return absl::OutOfRangeError(absl::StrCat(
        "[device] the daemon has ", count, count == 1 ? " GPU" : " GPUs",
        ", counted from 0. Got ", DeviceText(device),
        none ? "" : ". Start it with more: holdfastd --device=cuda:all"));
  }
  if (place == 0) return &home_;
  auto it = opened_.find(place);
  if (it == opened_.end()) {
    if (absl::Status s = Open(place); !s.ok()) return s;
    it = opened_.find(place);
  }
  return &it->second.device;
}

absl::Status SessionDevices::Open(int place) {
  Device* const found = further_[place - 1];
  absl::StatusOr<StreamId> stream = found->CreateStream(priority_);
  if (!stream.ok()) return stream.status();
  found->SetNumerics(*stream, numerics_);
  found->SetStop(stop_);
  if (tag_) found->TimeWork(*stream, tag_);
  const bool asynchronous = !found->host_memory();
  std::lock_guard<std::mutex> lock(mutex_);
  Further further;
  further.memory = std::make_shared<CachingAllocator>(
      found->CreateMemory(/*shared=*/false), limit_bytes_, *stream, account_);
  further.memory->set_place(place);
  if (asynchronous) {
    further.copies = std::make_unique<CopyStreams>(found, *stream, priority_);
    further.copies->TimeWork(tag_);
  }
  further.device = {found,   *stream,      further.memory.get(),
                    nullptr, asynchronous, further.copies.get()};
  opened_.emplace(place, std::move(further));
  return absl::OkStatus();
}

std::shared_ptr<CachingAllocator> SessionDevices::memory(int place) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = opened_.find(place);
  return it == opened_.end() ? nullptr : it->second.memory;
}

void SessionDevices::GuardFurther(int place) {
  Further& further = opened_.find(place)->second;
  if (further.guard != nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  SessionDevice& at = further.device;
  further.guard = std::make_shared<CachingAllocator>(
      at.device->CreateMemory(/*shared=*/false), limit_bytes_, at.stream,
      account_);
  further.guard->set_place(place);
  at.guard = further.guard.get();
}

std::vector<std::pair<int, std::shared_ptr<CachingAllocator>>>
SessionDevices::opened() const {
  std::vector<std::pair<int, std::shared_ptr<CachingAllocator>>> all;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [number, one] : opened_) {
    all.emplace_back(number, one.memory);
  }
  return all;
}

SessionDevices::Points SessionDevices::RecordPoints() {
  Points points;
  ForEachStream([&](Device* device, StreamId stream) {
    points.emplace_back(device, device->RecordPoint(stream));
  });
  return points;
}

SessionDevices::Points SessionDevices::RecordTimedPoints() {
  Points points;
  ForEach([&](int, const SessionDevice& one) {
    points.emplace_back(one.device, one.device->RecordTimedPoint(one.stream));
  });
  return points;
}

absl::Status SessionDevices::status() {
  absl::Status first;
  ForEachStream([&](Device* device, StreamId stream) {
    absl::Status status = device->StreamStatus(stream);
    if (first.ok()) first = std::move(status);
  });
  return first;
}

void SessionDevices::SetNumerics(const Numerics& numerics) {
  numerics_ = numerics;
  home_.device->SetNumerics(home_.stream, numerics);
  for (auto& [number, one] : opened_) {
    one.device.device->SetNumerics(one.device.stream, numerics);
  }
}

void SessionDevices::SetStop(StopSignal* stop) {
  stop_ = stop;
  home_.device->SetStop(stop);
  for (auto& [number, one] : opened_) one.device.device->SetStop(stop);
}

void SessionDevices::ForEach(
    absl::FunctionRef<void(int, const SessionDevice&)> visit) const {
  visit(0, home_);
  for (const auto& [place, one] : opened_) visit(place, one.device);
}

void SessionDevices::ForEachStream(
    absl::FunctionRef<void(Device*, StreamId)> visit) const {
  ForEach([&](int, const SessionDevice& one) {
    visit(one.device, one.stream);
    if (one.copies == nullptr) return;
    for (const auto& stream : {one.copies->up(), one.copies->down()}) {
      if (stream) visit(one.device, *stream);
    }
  });
}

void SessionDevices::TimeWork(std::optional<uint64_t> tag) {
  tag_ = tag;
  ForEach([&](int, const SessionDevice& one) {
    one.device->TimeWork(one.stream, tag);
    if (one.copies != nullptr) one.copies->TimeWork(tag);
  });
}

void SessionDevices::set_limit_bytes(size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  limit_bytes_ = bytes;
  for (auto& [number, one] : opened_) {
    one.memory->set_limit_bytes(bytes);
    if (one.guard != nullptr) one.guard->set_limit_bytes(bytes);
  }
}

void SessionDevices::ReleaseCached() {
  for (const auto& [number, one] : opened_) {
    if (one.guard != nullptr) one.guard->ReleaseCached();
  }
  for (const auto& [number, memory] : opened()) memory->ReleaseCached();
}

void SessionDevices::ResetPeak() {
  for (const auto& [number, memory] : opened()) memory->ResetPeak();
}

}  // namespace holdfast
