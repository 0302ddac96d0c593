// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// NamedDoor: a private daemon's second socket, at the place where every program
// looks. It is there from the first session with a name on, so that a later
// program finds what was left, and until the daemon ends.
// Thread-safety: the constructor and destructor from one thread; the door is
// opened from any of the registry's.
#ifndef HOLDFAST_SERVER_TRANSPORT_NAMED_DOOR_H_
#define HOLDFAST_SERVER_TRANSPORT_NAMED_DOOR_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/session/session_registry.h"
#include "server/transport/local_server.h"

namespace holdfast {

class NamedDoor {
 public:
  // `registry` must outlive it. Empty `path`: there is no such door.
  NamedDoor(SessionRegistry* registry, std::string path);
  ~NamedDoor();

  bool is_open() const { return open_.load(); }
  // Nobody comes through it any more. Idempotent.
  void Close();

 private:
  absl::Status Open();

  SessionRegistry* const registry_;
  const std::string path_;
  std::unique_ptr<LocalServer> server_;  // under the registry's door lock
  std::atomic<bool> open_{false};
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_NAMED_DOOR_H_
