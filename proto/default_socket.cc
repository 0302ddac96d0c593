// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/default_socket.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string DefaultSocketPath() {
  std::string path = Environment("HOLDFAST_SOCKET");
  if (!path.empty()) return path;
  const std::string runtime = Environment("XDG_RUNTIME_DIR");
  if (!runtime.empty()) {
    return absl::StrCat(runtime, "/holdfast/holdfastd.sock");
  }
  return absl::StrCat("/tmp/holdfast-", geteuid(), "/holdfastd.sock");
}

std::string ServiceSocketPath() {
  if (!Environment("HOLDFAST_SOCKET").empty()) return "";
  const std::string path = Environment("HOLDFAST_SERVICE_SOCKET");
  return path.empty() ? "/run/holdfast/holdfastd.sock" : path;
}

}  // namespace holdfast
