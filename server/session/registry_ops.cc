// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionRegistry: ops that are stopped from outside.
#include <string>

#include "absl/strings/str_format.h"
#include "proto/steady_time.h"
#include "server/exec/worker.h"
#include "server/session/session.h"
#include "server/session/session_registry.h"

namespace holdfast {
namespace {

// Once the daemon is to end.
constexpr double kHurriedSeconds = 1;

absl::Status DaemonEnds() {
  return absl::UnavailableError("stopped: the daemon is shutting down");
}

// Why an op that has taken so long is to stop; OK if it may go on.
absl::Status CheckOp(const Session& session, absl::Duration lasted, bool hurry,
                     SteadyTime now) {
  if (session.abandoned(now)) {
    return absl::AbortedError("stopped: its client is gone");
  }
  const double seconds = absl::ToDoubleSeconds(lasted);
  if (hurry && seconds >= kHurriedSeconds) return DaemonEnds();
  const double most = session.op_seconds();
  if (most == 0 || seconds < most) return absl::OkStatus();
  return absl::AbortedError(absl::StrFormat(
      "stopped after %.3g s: an op of %s may take at most %g s (the limit "
      "op_seconds). Compute it in parts, or ask an admin for more (holdfast "
      "limits)",
      seconds, session.options().user, most));
}

}  // namespace

std::shared_ptr<Session> SessionRegistry::FindById(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [token, session] : by_token_) {
    if (session->options().id == id) return session;
  }
  return nullptr;
}

absl::Duration SessionRegistry::LookAtTurn(const Worker::Turn& turn) {
  constexpr absl::Duration kNever = absl::InfiniteDuration();
  const std::shared_ptr<Session> session = FindById(turn.session);
  // One that was ended has been told to stop.
  if (session == nullptr || session->asynchronous()) return kNever;
  const uint64_t ops = session->ops_begun();
  const SteadyTime now = SteadyNow();
  if (turn.number != seen_op_.turn || ops != seen_op_.ops) {
    // Where the turn has had one op only, that took all of it.
    seen_op_ = {turn.number, ops, now};
  }
  const uint64_t op = session->running_op();
  const absl::Duration lasted = now - seen_op_.since;
  const absl::Status why = CheckOp(*session, lasted, hurry_.load(), now);
  if (why.ok()) {
    const double most = session->op_seconds();
    return most == 0 ? kNever : absl::Seconds(most) - lasted;
  }
  // It may have ended meanwhile; another one has done nothing.
  if (worker_->turn().number == turn.number && session->ops_begun() == ops) {
    session->StopOp(op, why);
  }
  return kNever;
}

void SessionRegistry::HurryOps(bool saves) {
  hurry_.store(true);
  for (const std::shared_ptr<Session>& session : Sessions()) {
    if (!saves || session->name().empty()) session->StopForGood(DaemonEnds());
  }
}

}  // namespace holdfast
