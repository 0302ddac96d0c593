// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the flags of files, trust and addresses mean, for the daemon's start and
// for --check_config. Thread-safety: after parsing, from any thread.
#ifndef HOLDFAST_SERVER_FLAG_VALUES_H_
#define HOLDFAST_SERVER_FLAG_VALUES_H_

#include <sys/types.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/transport/tls_credentials.h"
#include "server/trust/authenticator.h"

namespace holdfast {

absl::StatusOr<mode_t> SocketMode();
TlsFiles TlsFlags();
absl::StatusOr<std::shared_ptr<Authenticator>> MakeAuthenticator();

// Prints every mistake that a start would meet in what the flags name, one a
// line; returns the exit status. It listens nowhere and changes nothing.
int CheckConfiguration();

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_FLAG_VALUES_H_
