// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Session::Connect: from an address to a session.
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/connection.h"
#include "client/default_address.h"
#include "client/grpc_connection.h"
#include "client/local_socket.h"
#include "client/private_daemon.h"
#include "client/remembered_credentials.h"
#include "client/session_core.h"
#include "client/shm_connection.h"
#include "proto/steady_time.h"

namespace holdfast::client {
namespace {

absl::StatusOr<std::shared_ptr<Session>> OpenLocal(
    const ConnectOptions& options, std::unique_ptr<LocalSocket> socket,
    const std::string& path, std::shared_ptr<PrivateDaemon> daemon) {
  const std::string address = absl::StrCat("unix:", path);
  absl::StatusOr<std::unique_ptr<Connection>> connection = ShmConnection::Open(
      std::move(socket), MakeHello(options), address, options.timeout_seconds);
  if (!connection.ok()) return connection.status();
  return SessionCore::Create(*std::move(connection), address, std::move(daemon),
                             options.timeout_seconds);
}

// The daemon that runs for this user, or null. The default path may lie in a
// folder where others can put a socket of their own.
std::unique_ptr<LocalSocket> FindRunning(const std::string& path) {
  absl::StatusOr<std::unique_ptr<LocalSocket>> socket =
      LocalSocket::Connect(path);
  if (!socket.ok()) return nullptr;
  const absl::StatusOr<uint32_t> user = (*socket)->PeerUser();
  if (!user.ok() || (*user != geteuid() && *user != 0)) return nullptr;
  return *std::move(socket);
}

absl::StatusOr<std::shared_ptr<Session>> ConnectOnce(
    const ConnectOptions& options) {
  absl::StatusOr<Target> target = ParseAddress(options.address);
  if (!target.ok()) return target.status();
  switch (target->kind) {
    case Target::kNetwork: {
      absl::StatusOr<LoadedCredentials> credentials =
          LoadCredentials(target->where, options.credentials);
      if (!credentials.ok()) return credentials.status();
      absl::StatusOr<std::unique_ptr<Connection>> connection =
          GrpcConnection::Open(target->where, MakeHello(options),
                               options.timeout_seconds, *std::move(credentials),
                               options.reconnect_seconds);
      if (!connection.ok()) return connection.status();
      RememberCredentials(target->where, options.credentials);
      return SessionCore::Create(*std::move(connection), target->where, nullptr,
                                 options.timeout_seconds);
    }
    case Target::kSocket: {
      absl::StatusOr<std::unique_ptr<LocalSocket>> socket =
          LocalSocket::Connect(target->where);
      if (!socket.ok()) {
        return absl::Status(
            absl::IsNotFound(socket.status()) ? absl::StatusCode::kUnavailable
                                              : socket.status().code(),
            absl::StrCat(socket.status().message(),
                         " Start one there with: holdfast serve --socket ",
                         target->where));
      }
      return OpenLocal(options, *std::move(socket), target->where, nullptr);
    }
    case Target::kAny:
      break;
  }
  if (std::unique_ptr<LocalSocket> socket = FindRunning(target->where)) {
    return OpenLocal(options, std::move(socket), target->where, nullptr);
  }
  if (options.attach) {
    return absl::UnavailableError(absl::StrCat(
        "[connect] a session to attach to lives in a running daemon. Got none "
        "at unix:",
        target->where, "; name its address."));
  }
  absl::StatusOr<std::shared_ptr<PrivateDaemon>> daemon =
      PrivateDaemon::Get(options.daemon_path, options.timeout_seconds);
  if (!daemon.ok()) return daemon.status();
  if (!options.session_name.empty()) (*daemon)->NoteNamed();
  absl::StatusOr<std::unique_ptr<LocalSocket>> socket =
      LocalSocket::Connect((*daemon)->socket());
  if (!socket.ok()) return socket.status();
  const std::string path = (*daemon)->socket();
  return OpenLocal(options, *std::move(socket), path, *std::move(daemon));
}

// In the daemon's answer: it is worth while to ask again.
bool MayPass(const ConnectOptions& options, const absl::Status& status) {
  // A daemon that has just started may still load the session.
  constexpr char kBeingLoaded[] = "is being loaded";
  // Another program's private one, which ended as we came: there is another
  // next time.
  constexpr char kEnding[] = "is shutting down";
  // Its program has just ended.
  constexpr char kBeingLeft[] = "is being left";
  return absl::IsUnavailable(status) &&
         (absl::StrContains(status.message(), kBeingLoaded) ||
          absl::StrContains(status.message(), kBeingLeft) ||
          (options.address.empty() &&
           absl::StrContains(status.message(), kEnding)));
}

}  // namespace

bool DaemonRuns(const std::string& path) {
  return FindRunning(path) != nullptr;
}

absl::StatusOr<std::shared_ptr<Session>> Session::Connect(
    const ConnectOptions& options) {
  constexpr absl::Duration kRetry = absl::Milliseconds(200);
  const SteadyTime deadline =
      SteadyNow() + absl::Seconds(options.timeout_seconds);
  while (true) {
    absl::StatusOr<std::shared_ptr<Session>> session = ConnectOnce(options);
    if (session.ok() || !MayPass(options, session.status()) ||
        SteadyNow() + kRetry > deadline) {
      return session;
    }
    absl::SleepFor(kRetry);
  }
}

}  // namespace holdfast::client
