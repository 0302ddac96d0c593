// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the registry tells of the device and of a session's memory on it.
#include <memory>
#include <string>

#include "server/session/session.h"
#include "server/session/session_registry.h"

namespace holdfast {
namespace {

v1::SegmentStats::BlockState StateOf(const SegmentListing::Block& block) {
  if (block.in_use) return v1::SegmentStats::IN_USE;
  return block.awaited ? v1::SegmentStats::AWAITED : v1::SegmentStats::FREE;
}

void Tell(const SegmentListing& segment, v1::SegmentStats* told) {
  told->set_id(segment.id);
  told->set_bytes(segment.bytes);
  told->set_small(segment.small);
  for (const SegmentListing::Block& block : segment.blocks) {
    told->add_block_bytes(block.bytes);
    told->add_block_requested(block.requested);
    told->add_block_states(StateOf(block));
  }
}

}  // namespace

void SessionRegistry::TellProperties(v1::StatsReply* reply) const {
  const Device::ReplayCounts counts = device_->replay_counts();
  reply->set_replayed_launches(counts.replayed);
  reply->set_fused_launches(counts.fused);
  const DeviceProperties properties = device_->properties();
  if (properties.name.empty()) return;
  v1::DeviceProperties* told = reply->mutable_device_properties();
  told->set_name(properties.name);
  told->set_index(properties.index);
  told->set_major(properties.major);
  told->set_minor(properties.minor);
  told->set_multi_processors(properties.multi_processors);
  told->set_total_bytes(properties.total_bytes);
  told->set_free_bytes(device_->FreeBytes());
}

void SessionRegistry::ListMemory(const std::string& user, uint64_t id,
                                 v1::StatsReply* reply) {
  for (const std::shared_ptr<Session>& session : Sessions()) {
    if (session->options().id != id || session->options().user != user) {
      continue;
    }
    for (v1::SessionStats& stats : *reply->mutable_sessions()) {
      if (stats.id() != id) continue;
      for (const SegmentListing& segment : session->memory()->List()) {
        Tell(segment, stats.add_memory());
      }
    }
  }
}

}  // namespace holdfast
