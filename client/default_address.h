// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which daemon an address means.
// Thread-safety: reads the environment.
#ifndef HOLDFAST_CLIENT_DEFAULT_ADDRESS_H_
#define HOLDFAST_CLIENT_DEFAULT_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace holdfast::client {

struct Target {
  enum Kind {
    kSocket,   // `where` is a path
    kNetwork,  // `where` is "host:port"
    kAny,      // a running local daemon (`where`: its socket), else a private
               // one
  };
  Kind kind = kAny;
  std::string where;
};

// "" means $HOLDFAST_ADDRESS, and where that is empty too, kAny. Errors name
// what was given and where it came from.
absl::StatusOr<Target> ParseAddress(absl::string_view address);

// Where a running daemon is looked for that nobody named: "unix:/path".
std::string DefaultAddress();

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_DEFAULT_ADDRESS_H_
