// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Administer: answers what admins ask (proto/admin.proto), for both transports.
// Thread-safety: from any thread; waits for the worker when a session is ended.
#ifndef HOLDFAST_SERVER_SESSION_ADMIN_H_
#define HOLDFAST_SERVER_SESSION_ADMIN_H_

#include "absl/status/statusor.h"
#include "proto/admin.pb.h"
#include "server/session/session_registry.h"
#include "server/trust/user.h"

namespace holdfast {

// PERMISSION_DENIED names the roles when the peer has not the right one.
absl::StatusOr<v1::AdminReply> Administer(SessionRegistry* registry,
                                          const Peer& peer,
                                          const v1::AdminRequest& request);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_SESSION_ADMIN_H_
