// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is asked of a daemon without a session: requests of proto/admin.proto
// and what it tells of itself.
// Thread-safety: from any thread; waits for the answer.
#ifndef HOLDFAST_CLIENT_ADMIN_H_
#define HOLDFAST_CLIENT_ADMIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/session.h"

namespace holdfast::client {

// `request`: an AdminRequest in protobuf's JSON form, with the names of the
// .proto file; so is the answer, an AdminReply. Only a daemon that runs is
// asked: none is started.
absl::StatusOr<std::string> AskAdmin(const ConnectOptions& options,
                                     const std::string& request);

// What a daemon tells of itself and of the asker's sessions: a serialized
// StatsReply. Takes no session, so that it is answered where there is no room
// for one.
absl::StatusOr<std::string> AskStats(const ConnectOptions& options);

// Gives the session of that token a name. Returns for how many seconds it then
// outlives its connection. Unimplemented by older daemons.
absl::StatusOr<double> NameSession(const ConnectOptions& options,
                                   const std::string& token,
                                   const std::string& name,
                                   double grace_seconds);

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_ADMIN_H_
