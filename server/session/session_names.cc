// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionRegistry: sessions that have a name, which other programs find and
// take over, and how long they wait for one.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/steady_time.h"
#include "server/log/log.h"
#include "server/session/session.h"
#include "server/session/session_registry.h"

namespace holdfast {
namespace {

// A program that has just ended is taken for one that uses its session until
// the worker has heard of it: whoever comes next waits so long for that.
constexpr absl::Duration kHangUpHeardWithin = absl::Seconds(2);
constexpr absl::Duration kHangUpLookEvery = absl::Milliseconds(1);

}  // namespace

absl::StatusOr<absl::Duration> SessionRegistry::Grace(double asked) const {
  if (std::isnan(asked)) {
    return absl::InvalidArgumentError(
        "[hello] the grace period must be a number of seconds. Got nan");
  }
  // Negative: as long as the daemon allows.
  const double most = limits_.max_grace_seconds < 0
                          ? std::numeric_limits<double>::infinity()
                          : limits_.max_grace_seconds;
  return absl::Seconds(asked < 0 ? most : std::min(asked, most));
}

std::shared_ptr<Session> SessionRegistry::FindByName(const std::string& name,
                                                     const std::string& user) {
  for (const auto& [token, session] : by_token_) {
    if (!session->ended() && session->options().user == user &&
        session->name() == name) {
      return session;
    }
  }
  return nullptr;
}

void SessionRegistry::AwaitHangUp(const v1::HelloRequest& request,
                                  const User& user) {
  if (!request.attach_if_away() || request.attach() ||
      request.session_name().empty() || !request.session_token().empty()) {
    return;
  }
  std::shared_ptr<Session> named;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    named = FindByName(request.session_name(), user.name);
  }
  if (named == nullptr) return;
  const SteadyTime until = SteadyNow() + kHangUpHeardWithin;
  while (named->life()->connected() && SteadyNow() < until &&
         (named->life()->leaving() || named->client_is_gone())) {
    absl::SleepFor(kHangUpLookEvery);
  }
}

bool SessionRegistry::Attach(const std::shared_ptr<Session>& session,
                             const v1::HelloRequest& request,
                             absl::Duration grace) {
  // The former client, if it is still somewhere, must not come back.
  const std::string former = session->token();
  if (request.default_grace()) {
    grace = std::max(grace, session->life()->grace());
  }
  SessionLife* const life = session->life();
  // The worker is at an op of who is dead, and hears of it after that: nobody
  // else uses the session, which has a grace period for this.
  const bool dead = life->connected() && !life->leaving() &&
                    life->grace() > absl::ZeroDuration() &&
                    session->client_is_gone();
  if (!life->Attach(absl::BytesToHexString(NewSecret()), grace,
                    /*only_if_away=*/!request.attach() && !dead, SteadyNow())) {
    return false;
  }
  NoteTakenOver(former, *session);
  Rekey(former, session);
  return true;
}

absl::Status SessionRegistry::CheckMappable(const Session& session,
                                            bool local) const {
  const Session::Options& options = session.options();
  if (!local || options.local || options.mappable) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "[hello] session '", session.name(),
      "' was opened over gRPC before it had a name, so its memory cannot be "
      "shared: attach to it over gRPC"));
}

absl::Status SessionRegistry::NameSession(
    const User& user, const v1::AdminRequest::NameSession& request,
    v1::AdminReply* reply) {
  if (request.name().empty() || request.name().size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("[session] a name must have 1 to ", kMaxNameBytes,
                     " bytes. Got ", request.name().size()));
  }
  const absl::StatusOr<absl::Duration> grace = Grace(request.grace_seconds());
  if (!grace.ok()) return grace.status();
  if (absl::Status found = OpenNamedDoor(); !found.ok()) return found;
  std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<Session> session = Find(request.session_token(), user);
  if (session == nullptr || session->options().parent_id != 0) {
    return absl::NotFoundError("[session] no session has this token");
  }
  absl::Status loaded = CheckLoaded(user.name, request.name());
  if (!loaded.ok()) return loaded;
  if (!session->name().empty() ||
      FindByName(request.name(), user.name) != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("[session] a session of ", user.name, " is named '",
                     request.name(), "' already, or this one has a name"));
  }
  session->set_name(request.name());
  session->life()->SetGrace(*grace);
  reply->set_grace_seconds(absl::ToDoubleSeconds(*grace));
  LogSession(spdlog::level::info,
             {session->options().id, session->options().trace_id}, "named",
             {{"name", request.name()}});
  return absl::OkStatus();
}

absl::Status SessionRegistry::OpenNamedDoor() {
  std::lock_guard<std::mutex> lock(door_mutex_);
  return open_named_door_ == nullptr ? absl::OkStatus() : open_named_door_();
}

void SessionRegistry::set_named_door(std::function<absl::Status()> open) {
  std::lock_guard<std::mutex> lock(door_mutex_);
  open_named_door_ = std::move(open);
}

}  // namespace holdfast
