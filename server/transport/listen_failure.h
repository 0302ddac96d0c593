// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Why nothing listens on an address: the libraries that listen for us say only
// that they could not. Thread-safety: any thread; blocks while the host's name
// is looked up.
#ifndef HOLDFAST_SERVER_TRANSPORT_LISTEN_FAILURE_H_
#define HOLDFAST_SERVER_TRANSPORT_LISTEN_FAILURE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace holdfast {

// The error of a listener that did not get `address`, "host:port", which `flag`
// gave: tries the address once more and says what is in the way and what to do.
absl::Status ListenFailure(absl::string_view flag, const std::string& address);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_LISTEN_FAILURE_H_
