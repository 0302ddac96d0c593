// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the registry tells those who watch the daemon.
#include "absl/strings/str_cat.h"
#include "proto/steady_time.h"
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

// REQUIRES: mutex_ held.
void SessionRegistry::NoteEnded(const Session& session) {
  const v1::SessionStats stats = session.Stats();
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
  const absl::Status lost = device_->health();
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

absl::Duration SessionRegistry::WorkerSilence() const {
  return SteadyNow() - absl::FromUnixMicros(last_tick_us_.load());
}

}  // namespace holdfast
