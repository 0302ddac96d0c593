// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// HttpServer: what people and programs that watch the daemon read, over plain
// HTTP: /metrics for Prometheus, /healthz and /readyz for supervisors, a web
// page at / with /api/status behind it. It changes nothing: GET only. Readers
// see sums, their own sessions, and as admins everybody's.
// Thread-safety: Start and Stop from one thread. Requests are served by threads
// of its own and never wait for the worker.
#ifndef HOLDFAST_SERVER_HTTP_HTTP_SERVER_H_
#define HOLDFAST_SERVER_HTTP_HTTP_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/exec/watchdog.h"
#include "server/session/session_registry.h"
#include "server/transport/tls_credentials.h"

namespace holdfast {

class HttpServer {
 public:
  struct Options {
    std::string address;        // "host:port"; port 0: any free one
    bool allow_remote = false;  // else only this host's own addresses
    bool everything = false;    // whoever asks sees everybody's sessions
    TlsFiles tls = {};          // of --listen: when they expire is a metric
  };
  // `registry` and `watchdog` must outlive the server.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      SessionRegistry* registry, const Watchdog* watchdog,
      const Options& options);
  ~HttpServer();  // stops

  // Waits for requests that are being served. Idempotent.
  void Stop();
  // "host:port" with the port that was bound.
  const std::string& address() const { return address_; }

 private:
  struct Running;

  HttpServer();

  std::string address_;
  std::unique_ptr<Running> running_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_HTTP_HTTP_SERVER_H_
