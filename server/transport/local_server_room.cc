// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// LocalServer: how many sockets a user may have.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/limits/room_for_others.h"
#include "server/session/session.h"
#include "server/transport/local_server.h"

namespace holdfast {

absl::Status LocalServer::CheckRoom(const std::string& user) {
  const uint64_t own = sockets_[user];
  const uint64_t most = registry_->LimitsOf(user).max_connections();
  if (most != 0 && own >= most) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "[local] ", user, " may have at most ", most,
        " connections on this machine and has ", own,
        ". Close some, or ask an admin for more (holdfast limits)."));
  }
  if (!RoomForOthers(own, clients_.size(), options_.max_clients)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("[local] the daemon serves at most ", options_.max_clients,
                     " local clients, the last of them of users with few; ",
                     user, " has ", own, "."));
  }
  return absl::OkStatus();
}

}  // namespace holdfast
