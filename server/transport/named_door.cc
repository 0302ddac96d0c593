// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/named_door.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace holdfast {

NamedDoor::NamedDoor(SessionRegistry* registry, std::string path)
    : registry_(registry), path_(std::move(path)) {
  if (!path_.empty()) {
    registry_->set_named_door([this] { return Open(); });
  }
}

NamedDoor::~NamedDoor() { Close(); }

void NamedDoor::Close() {
  registry_->set_named_door(nullptr);
  if (server_ != nullptr) server_->Stop();
}

absl::Status NamedDoor::Open() {
  if (server_ != nullptr) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<LocalServer>> server =
      LocalServer::Start(registry_, {path_});
  if (!server.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[hello] a session with a name must be found by later programs, and a "
        "private daemon cannot listen where they look: ",
        server.status().message()));
  }
  server_ = *std::move(server);
  open_.store(true);
  spdlog::info("sessions with names are found at {}", path_);
  return absl::OkStatus();
}

}  // namespace holdfast
