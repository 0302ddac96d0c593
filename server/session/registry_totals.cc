// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the registry tells those who watch the daemon.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/device.h"
#include "ops/op_schema.h"
#include "proto/steady_time.h"
#include "proto/version.h"
#include "server/exec/op_runner.h"
#include "server/exec/published_tensors.h"
#include "server/session/session.h"
#include "server/session/session_registry.h"

namespace holdfast {

absl::StatusOr<SessionRegistry::Welcome> SessionRegistry::Hello(
    const v1::HelloRequest& request, const Peer& peer, bool local) {
  absl::StatusOr<Welcome> welcome = OpenOrFind(request, peer, local);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!welcome.ok()) {
    ++totals_.refused[welcome.status().code()];
  } else if (!request.session_token().empty()) {
    ++totals_.resumed;
  } else if (request.attach()) {
    ++totals_.attached;
  } else {
    ++totals_.opened;
  }
  return welcome;
}

void SessionRegistry::NoteRefused(absl::StatusCode code) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++totals_.refused[code];
}

void SessionRegistry::NoteEnded(const Session& session) {
  const v1::SessionStats stats = session.Stats();
  std::lock_guard<std::mutex> lock(mutex_);
  ++totals_.ended[session.end_code()];
  totals_.ended_ops += stats.ops();
  totals_.ended_device_seconds += stats.device_seconds();
  totals_.ended_refused_allocations += stats.refused_allocations();
}

SessionTotals SessionRegistry::Totals() {
  std::lock_guard<std::mutex> lock(mutex_);
  return totals_;
}

absl::Status SessionRegistry::CheckOpen() const {
  if (shut_down_) return absl::UnavailableError("the daemon is shutting down");
  // Before the daemon has got round to it, sessions would only be ended again.
  absl::Status lost = device_->health();
  for (const Device* device : further_devices_) lost.Update(device->health());
  if (lost.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "the daemon starts again, for its device is lost: ", lost.message()));
}

absl::Status SessionRegistry::Ready() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (absl::Status open = CheckOpen(); !open.ok()) return open;
  if (by_token_.size() >= limits_.max_sessions) {
    return absl::UnavailableError(absl::StrCat(
        "all of --max_sessions=", limits_.max_sessions, " are taken"));
  }
  return absl::OkStatus();
}

void SessionRegistry::CloseDoor() {
  std::lock_guard<std::mutex> lock(mutex_);
  shut_down_ = true;
}

v1::StatsReply SessionRegistry::Stats() {
  v1::StatsReply reply;
  reply.set_server(kServerName);
  reply.set_device(std::string(device_->name()));
  TellProperties(&reply);
  reply.set_uptime_seconds(absl::ToDoubleSeconds(SteadyNow() - started_));
  reply.set_memory_limit_bytes(limits_.memory_limit_bytes);
  // Without the lock: each asks its allocator, and Hellos need not wait.
  for (const std::shared_ptr<Session>& session : Sessions()) {
    if (!session->ended()) *reply.add_sessions() = session->Stats();
  }
  std::sort(reply.mutable_sessions()->pointer_begin(),
            reply.mutable_sessions()->pointer_end(),
            [](const v1::SessionStats* a, const v1::SessionStats* b) {
              return a->id() < b->id();
            });
  const PublishedTensors::Statistics published = names_->Stats();
  reply.set_published_names(published.names);
  reply.set_published_bytes(published.bytes);
  if (const SessionArchive* archive = archive_.load()) {
    reply.set_state_bytes(archive->bytes_found());
    reply.set_state_bytes_loaded(archive->bytes_loaded());
  }
  for (const OpSchema& op : AllOps()) {
    const OpCounters& counters = AllOpCounters()[static_cast<int>(op.id)];
    if (counters.calls.load(std::memory_order_relaxed) == 0) continue;
    v1::OpStats* stats = reply.add_ops();
    stats->set_name(op.name);
    stats->set_calls(counters.calls.load(std::memory_order_relaxed));
    stats->set_failures(counters.failures.load(std::memory_order_relaxed));
    stats->set_seconds(counters.nanoseconds.load(std::memory_order_relaxed) *
                       1e-9);
  }
  return reply;
}

v1::StatsReply SessionRegistry::StatsFor(const User& user,
                                         const v1::StatsRequest& request) {
  v1::StatsReply reply = Stats();
  if (request.memory_of() != 0) {
    ListMemory(user.name, request.memory_of(), &reply);
  }
  if (user.admin()) return reply;
  v1::StatsReply own = reply;
  own.clear_sessions();
  for (v1::SessionStats& session : *reply.mutable_sessions()) {
    if (session.user() == user.name) {
      *own.add_sessions() = std::move(session);
    }
  }
  return own;
}

}  // namespace holdfast
