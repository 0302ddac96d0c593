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
      "stopped after %.1f s: an op of %s may take at most %g s (the limit "
      "op_seconds). Compute it in parts, or ask an admin for more (holdfast "
      "limits)",
      seconds, session.options().user, most));
}

}  // namespace

void SessionRegistry::LookAtTurn(const Worker::Turn& turn) {
  std::shared_ptr<Session> session;
  for (const std::shared_ptr<Session>& one : Sessions()) {
    if (one->options().id == turn.session) session = one;
  }
  // One that was ended has been told to stop.
  if (session == nullptr) return;
  const uint64_t ops = session->ops_begun();
  const SteadyTime now = SteadyNow();
  if (turn.number != seen_op_.turn || ops != seen_op_.ops) {
    // Where the turn has had one op only, that took all of it.
    seen_op_ = {turn.number, ops, now};
  }
  const uint64_t op = session->running_op();
  const absl::Status why =
      CheckOp(*session, now - seen_op_.since, hurry_.load(), now);
  if (why.ok() || session->asynchronous()) return;
  // It may have ended meanwhile; another one has done nothing.
  if (worker_->turn().number != turn.number || session->ops_begun() != ops) {
    return;
  }
  session->StopOp(op, why);
}

void SessionRegistry::HurryOps(bool saves) {
  hurry_.store(true);
  for (const std::shared_ptr<Session>& session : Sessions()) {
    if (!saves || session->name().empty()) session->StopForGood(DaemonEnds());
  }
}

}  // namespace holdfast
