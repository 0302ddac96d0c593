// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Session::Connect: from an address to a session.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
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
#include "proto/default_socket.h"
#include "proto/steady_time.h"

namespace holdfast::client {
namespace {

constexpr char kRunAheadVariable[] = "HOLDFAST_RUN_AHEAD_SECONDS";
constexpr double kRunAheadSeconds = 2;

// ConnectOptions.run_ahead_seconds, as it is meant.
absl::StatusOr<double> FindRunAhead(const ConnectOptions& options) {
  double seconds = kRunAheadSeconds;
  std::string source = "run_ahead";
  const char* variable = std::getenv(kRunAheadVariable);
  bool ok = true;
  if (options.run_ahead_seconds.has_value()) {
    seconds = *options.run_ahead_seconds;
  } else if (variable != nullptr && *variable != '\0') {
    source = absl::StrCat(kRunAheadVariable, "=", variable);
    ok = absl::SimpleAtod(variable, &seconds);
  }
  if (ok && seconds > 0) return seconds;  // false for NaN
  return absl::InvalidArgumentError(absl::StrCat(
      "[connect] the seconds that a program may be ahead of the daemon must be "
      "a number above 0; \"inf\": no bound. Got ",
      source, ok ? absl::StrCat(" of ", seconds) : "", "."));
}

absl::StatusOr<std::shared_ptr<Session>> OpenLocal(
    const ConnectOptions& options, std::unique_ptr<LocalSocket> socket,
    const std::string& path, std::shared_ptr<PrivateDaemon> daemon) {
  const std::string address = absl::StrCat("unix:", path);
  absl::StatusOr<std::unique_ptr<Connection>> connection = ShmConnection::Open(
      std::move(socket), MakeHello(options), address, options.timeout_seconds);
  if (!connection.ok()) return connection.status();
  return SessionCore::Create(*std::move(connection), address, std::move(daemon),
                             options.timeout_seconds,
                             *options.run_ahead_seconds);
}

// A private daemon is outside of the service's limits and shares: nobody gets
// one without a word where there is a service.
void SayServiceIsPassedOver() {
  static std::atomic<bool> said{false};
  const std::string service = ServiceSocketPath();
  if (service.empty() || access(service.c_str(), F_OK) != 0 ||
      said.exchange(true)) {
    return;
  }
  const absl::Status why = LocalSocket::Connect(service).status();
  std::fputs(absl::StrCat("holdfast: a private daemon is started, since the "
                          "service of this machine cannot be used: ",
                          why.ok() ? absl::StrCat("unix:", service,
                                                  " is not the service's own")
                                   : why.message(),
                          "\n")
                 .c_str(),
             stderr);
}

// REQUIRES: options.run_ahead_seconds is there.
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
                                 options.timeout_seconds,
                                 *options.run_ahead_seconds);
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
  std::string running;
  if (std::unique_ptr<LocalSocket> socket = FindRunning(&running)) {
    return OpenLocal(options, std::move(socket), running, nullptr);
  }
  if (options.attach) {
    return absl::UnavailableError(absl::StrCat(
        "[connect] a session to attach to lives in a running daemon. Got none "
        "at unix:",
        target->where, "; name its address."));
  }
  SayServiceIsPassedOver();
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

absl::StatusOr<std::shared_ptr<Session>> Session::Connect(
    const ConnectOptions& wanted) {
  const absl::StatusOr<double> run_ahead = FindRunAhead(wanted);
  if (!run_ahead.ok()) return run_ahead.status();
  ConnectOptions options = wanted;
  options.run_ahead_seconds = *run_ahead;
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
