// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// PrivateDaemon: a daemon of this process alone, for programs that name none.
// Started with the first session that wants it, shared by all, stopped with
// the last; it also ends by itself when the process does. One in which a
// session got a name outlives them for as long as it has sessions, and is found
// where programs look for a daemon (server/transport/named_door.h).
// Thread-safety: Get from any thread.
#ifndef HOLDFAST_CLIENT_PRIVATE_DAEMON_H_
#define HOLDFAST_CLIENT_PRIVATE_DAEMON_H_

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace holdfast::client {

class PrivateDaemon {
 public:
  // The process's daemon; starts one if there is none. `daemon_path` is
  // ConnectOptions'.
  static absl::StatusOr<std::shared_ptr<PrivateDaemon>> Get(
      const std::string& daemon_path, double timeout_seconds);
  ~PrivateDaemon();

  const std::string& socket() const { return socket_; }
  // A session got a name: from now on the daemon is found by other programs,
  // and ends by itself when nobody has a session there.
  void NoteNamed() { named_ = true; }
  // One was left: the daemon outlives this program, which need not wait.
  void NoteLeft() { left_ = true; }

 private:
  PrivateDaemon() = default;
  absl::Status Start(const std::string& binary, double timeout_seconds);
  // What it said on stderr, for an error message.
  std::string Log() const;
  bool Running();
  // Ends the daemon and removes its folder. Idempotent.
  void Stop();

  std::string folder_;  // private; holds the socket and the log
  std::string socket_;
  pid_t process_ = -1;
  std::atomic<bool> named_{false}, left_{false};
  unsigned generation_ = 0;  // a forked child must not stop its parent's
};

// The daemon's binary: $HOLDFAST_DAEMON, `daemon_path`, next to this library
// (and its bin/), PATH. An error that says how to get one.
absl::StatusOr<std::string> FindDaemon(const std::string& daemon_path);

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_PRIVATE_DAEMON_H_
