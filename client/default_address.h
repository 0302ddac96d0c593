// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which daemon an address means.
// Thread-safety: reads the environment.
#ifndef HOLDFAST_CLIENT_DEFAULT_ADDRESS_H_
#define HOLDFAST_CLIENT_DEFAULT_ADDRESS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/local_socket.h"

namespace holdfast::client {

struct Target {
  enum Kind {
    kSocket,   // `where` is a path
    kNetwork,  // `where` is "host:port", or "grpc+unix:/path"
    kAny,      // a running local daemon (FindRunning; `where`: the user's own
               // one's socket), else a private one
  };
  Kind kind = kAny;
  std::string where;
};

// "" means $HOLDFAST_ADDRESS, and where that is empty too, kAny. Errors name
// what was given and where it came from.
absl::StatusOr<Target> ParseAddress(absl::string_view address);

// gRPC over a Unix socket: one that ssh forwards, say.
inline constexpr char kGrpcOverSocket[] = "grpc+unix:";

// The daemon of this machine that nobody named: the service
// (proto/default_socket.h), whose limits hold for everybody, else the user's
// own. Null if none answers that is to be
// believed: of the user or root, or of whom root made the service's folder for.
// `path` is then where it listens.
std::unique_ptr<LocalSocket> FindRunning(std::string* path);
// The path of that one; "" if there is none.
std::string RunningDaemon();
// "unix:/path" of that one, else of where the user's own would be.
std::string DefaultAddress();

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_DEFAULT_ADDRESS_H_
