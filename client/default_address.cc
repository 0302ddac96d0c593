// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/default_address.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/default_socket.h"

namespace holdfast::client {
namespace {

absl::Status Malformed(absl::string_view address, absl::string_view origin) {
  return absl::InvalidArgumentError(
      absl::StrCat("[connect] ", origin,
                   " must be \"host:port\" or \"unix:/path/to/socket\". Got \"",
                   address, "\"."));
}

}  // namespace

std::string DefaultAddress() {
  return absl::StrCat("unix:", DefaultSocketPath());
}

absl::StatusOr<Target> ParseAddress(absl::string_view address) {
  absl::string_view origin = "the address";
  if (address.empty()) {
    const char* variable = std::getenv("HOLDFAST_ADDRESS");
    if (variable == nullptr || *variable == '\0') {
      return Target{Target::kAny, DefaultSocketPath()};
    }
    address = variable;
    origin = "HOLDFAST_ADDRESS";
  }
  absl::string_view rest = address;
  if (absl::ConsumePrefix(&rest, "unix:")) {
    // unix:///path is the URI's spelling of the same.
    if (absl::StartsWith(rest, "///")) rest.remove_prefix(2);
    if (rest.empty()) return Malformed(address, origin);
    return Target{Target::kSocket, std::string(rest)};
  }
  absl::ConsumePrefix(&rest, "grpc://");
  const size_t colon = rest.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(rest.substr(colon + 1), &port) || port == 0 ||
      port > 65535 || absl::StrContains(rest, '/')) {
    return Malformed(address, origin);
  }
  return Target{Target::kNetwork, std::string(rest)};
}

}  // namespace holdfast::client
