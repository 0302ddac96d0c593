// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/default_address.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

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
                   " must be \"host:port\", \"unix:/path/to/socket\" or "
                   "\"grpc+unix:/path/to/socket\". Got \"",
                   address, "\"."));
}

// Whose folder the service's socket is in, which nobody else can write; -1
// where that does not hold.
int64_t OwnerOfFolder(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/'));
  struct stat info;
  if (lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
      (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return -1;
  }
  return info.st_uid;
}

}  // namespace

std::unique_ptr<LocalSocket> FindRunning(std::string* path) {
  const std::string service = ServiceSocketPath();
  for (const std::string& place : {service, DefaultSocketPath()}) {
    if (place.empty()) continue;
    absl::StatusOr<std::unique_ptr<LocalSocket>> socket =
        LocalSocket::Connect(place);
    if (!socket.ok()) continue;
    const absl::StatusOr<uint32_t> user = (*socket)->PeerUser();
    if (!user.ok()) continue;
    // The default path may lie in a folder where others can put a socket of
    // their own; the service's folder is root's to make.
    if (*user == geteuid() || *user == 0 ||
        (place == service && OwnerOfFolder(place) == int64_t{*user})) {
      *path = place;
      return *std::move(socket);
    }
  }
  return nullptr;
}

std::string RunningDaemon() {
  std::string path;
  FindRunning(&path);
  return path;
}

std::string DefaultAddress() {
  const std::string running = RunningDaemon();
  return absl::StrCat("unix:", running.empty() ? DefaultSocketPath() : running);
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
  if (absl::StartsWith(rest, kGrpcOverSocket)) {
    if (rest.size() == sizeof(kGrpcOverSocket) - 1) {
      return Malformed(address, origin);
    }
    return Target{Target::kNetwork, std::string(rest)};
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
