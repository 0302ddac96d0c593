// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// AskAdmin: a request of proto/admin.proto to a daemon, without a session.
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

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_ADMIN_H_
