// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the registry tells of the device and of a session's memory on it.
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "server/session/session.h"
#include "server/session/session_registry.h"

namespace holdfast {
namespace {

void Tell(const Device& device, v1::StatsReply* reply) {
  const DeviceProperties properties = device.properties();
  if (properties.name.empty()) return;
  v1::DeviceProperties* told = reply->add_device_properties();
  told->set_name(properties.name);
  told->set_index(properties.index);
  told->set_major(properties.major);
  told->set_minor(properties.minor);
  told->set_multi_processors(properties.multi_processors);
  told->set_total_bytes(properties.total_bytes);
  told->set_free_bytes(device.FreeBytes());
}

}  // namespace

void SessionRegistry::TellProperties(v1::StatsReply* reply) const {
  std::vector<Device*> devices = {device_};
  devices.insert(devices.end(), further_devices_.begin(),
                 further_devices_.end());
  Device::ReplayCounts counts;
  for (const Device* device : devices) {
    counts.replayed += device->replay_counts().replayed;
    counts.fused += device->replay_counts().fused;
    Tell(*device, reply);
  }
  reply->set_replayed_launches(counts.replayed);
  reply->set_fused_launches(counts.fused);
}

void SessionRegistry::ListGpus(v1::HelloReply* reply) const {
  if (device_->handle_kind() == MemoryHandleKind::kNone) return;
  std::vector<const Device*> devices = {device_};
  devices.insert(devices.end(), further_devices_.begin(),
                 further_devices_.end());
  for (const Device* device : devices) {
    v1::Gpu* gpu = reply->add_gpus();
    gpu->set_handles(device->handle_kind() == MemoryHandleKind::kCudaIpc
                         ? v1::Gpu::CUDA_IPC
                         : v1::Gpu::FILE);
    gpu->set_bus_id(device->properties().bus_id);
  }
}

void SessionRegistry::ListMemory(const std::string& user, uint64_t id,
                                 v1::StatsReply* reply) {
  for (const std::shared_ptr<Session>& session : Sessions()) {
    if (session->options().id != id || session->options().user != user) {
      continue;
    }
    for (v1::SessionStats& stats : *reply->mutable_sessions()) {
      if (stats.id() != id) continue;
      session->ListMemory(&stats);
    }
  }
}

}  // namespace holdfast
