// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/session/admin.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/steady_time.h"
#include "server/session/session.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

constexpr size_t kMaxReasonBytes = 1024;

absl::Status MayNot(const Peer& peer) {
  return absl::PermissionDeniedError(absl::StrCat(
      "[admin] only an admin may do that. Got ", peer.user.name, " (",
      peer.credential, ") with the role ", RoleName(peer.user.role),
      ". Admins are root and the user that runs the daemon, over its Unix "
      "socket; holders of a token made with --admin; users that the "
      "configuration makes admins."));
}

// Admins everybody's, others their own.
bool MayEnd(const Peer& peer, const Session& session) {
  return peer.user.admin() || session.options().user == peer.user.name;
}

void ListSessions(SessionRegistry* registry, const Peer& peer,
                  v1::AdminReply* reply) {
  const SteadyTime now = SteadyNow();
  for (const std::shared_ptr<Session>& session : registry->Sessions()) {
    if (session->ended() || !MayEnd(peer, *session)) continue;
    const v1::SessionStats stats = session->Stats();
    v1::AdminSession* listed = reply->add_sessions();
    listed->set_id(stats.id());
    listed->set_user(stats.user());
    listed->set_name(stats.name());
    listed->set_client(stats.client());
    listed->set_transport(stats.transport());
    listed->set_connected(stats.connected());
    listed->set_credential(session->credential());
    listed->set_bytes_in_use(stats.bytes_in_use());
    listed->set_bytes_reserved(stats.bytes_in_use() + stats.bytes_cached());
    listed->set_ops(stats.ops());
    listed->set_device_seconds(stats.device_seconds());
    listed->set_idle_seconds(
        std::max(0.0, absl::ToDoubleSeconds(now - session->last_active())));
    listed->set_weight(session->user_share()->account.weight());
  }
  std::sort(reply->mutable_sessions()->begin(),
            reply->mutable_sessions()->end(),
            [](const auto& a, const auto& b) { return a.id() < b.id(); });
}

absl::Status Kill(SessionRegistry* registry, const Peer& peer,
                  const v1::AdminRequest::KillSession& request) {
  for (const std::shared_ptr<Session>& session : registry->Sessions()) {
    if (session->options().id != request.id() || session->ended() ||
        !MayEnd(peer, *session)) {
      continue;
    }
    const std::string reason = request.reason().substr(0, kMaxReasonBytes);
    spdlog::warn("session {} of {} is ended by {}: {}", request.id(),
                 session->options().user, peer.user.name, reason);
    registry->End(session,
                  absl::AbortedError(absl::StrCat(
                      "[admin] ", peer.user.name, " ended this session",
                      reason.empty() ? "" : ": ", reason)));
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat("[admin] no session ", peer.user.admin() ? "" : "of yours ",
                   "has the number ", request.id(), "; holdfast ",
                   peer.user.admin() ? "sessions" : "status", " lists them"));
}

void LogLimits(const Peer& peer, const v1::AdminRequest::SetLimits& request) {
  const std::string whose = request.user().empty()
                                ? "limits of everybody"
                                : absl::StrCat("limits of ", request.user());
  if (request.reset()) {
    spdlog::info("{} are as configured again, by {}", whose, peer.user.name);
  }
  const std::string set = request.limits().ShortDebugString();
  if (!set.empty()) {
    spdlog::info("{} are set by {}: {}", whose, peer.user.name, set);
  }
}

// What only admins may do.
absl::Status Change(SessionRegistry* registry, const Peer& peer,
                    const v1::AdminRequest& request, v1::AdminReply* reply) {
  switch (request.kind_case()) {
    case v1::AdminRequest::kSetLimits: {
      absl::Status status = registry->SetLimits(request.set_limits());
      if (!status.ok()) return status;
      LogLimits(peer, request.set_limits());
      registry->ListUsers(reply);
      return absl::OkStatus();
    }
    case v1::AdminRequest::kReload:
      return registry->Reload();
    default:
      return absl::UnimplementedError(
          "[admin] this daemon does not know the request");
  }
}

}  // namespace

absl::StatusOr<v1::AdminReply> Administer(SessionRegistry* registry,
                                          const Peer& peer,
                                          const v1::AdminRequest& request) {
  v1::AdminReply reply;
  if (request.kind_case() == v1::AdminRequest::kWhoami) {
    v1::AdminUser* user = reply.add_users();
    user->set_name(peer.user.name);
    user->set_role(RoleName(peer.user.role));
    return reply;
  }
  absl::Status status;
  switch (request.kind_case()) {
    case v1::AdminRequest::kListSessions:
      ListSessions(registry, peer, &reply);
      break;
    case v1::AdminRequest::kKillSession:
      status = Kill(registry, peer, request.kill_session());
      break;
    case v1::AdminRequest::kNameSession:
      status = registry->NameSession(peer.user, request.name_session(), &reply);
      break;
    case v1::AdminRequest::kListUsers:
      if (peer.user.admin()) {
        registry->ListUsers(&reply);
      } else {
        registry->ListUser(peer.user, &reply);
      }
      break;
    default:
      if (!peer.user.admin()) return MayNot(peer);
      status = Change(registry, peer, request, &reply);
  }
  if (!status.ok()) return status;
  if (peer.user.admin()) {
    reply.set_refused_credentials(registry->trust()->refused());
  }
  return reply;
}

}  // namespace holdfast
