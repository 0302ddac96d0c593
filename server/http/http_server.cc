// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "httplib.h"
#include "server/http/http_connections.h"
#include "server/http/web_files.h"
#include "server/metrics/history.h"
#include "server/metrics/metrics_page.h"
#include "server/metrics/status_json.h"
#include "server/metrics/viewer.h"
#include "server/transport/grpc_server.h"
#include "server/transport/listen_failure.h"
#include "server/trust/authenticator.h"

namespace holdfast {
namespace {

constexpr size_t kMaxBodyBytes = 4096;  // of a request; none has a body

// The page loads nothing from elsewhere and is shown in no other page.
constexpr char kContentPolicy[] =
    "default-src 'self'; img-src 'self' data:; style-src 'self' "
    "'unsafe-inline'; frame-ancestors 'none'";
constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";
constexpr char kTextType[] = "text/plain; charset=utf-8";

// A second daemon on the port is a mistake to report, not to share it with.
void SetSocketOptions(socket_t socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

// "localhost:80" -> "localhost", "[::1]:80" -> "[::1]".
std::string HostOf(const std::string& authority) {
  const size_t colon = authority.rfind(':');
  const size_t bracket = authority.rfind(']');
  if (colon == authority.npos ||
      (bracket != authority.npos && colon < bracket)) {
    return authority;
  }
  return authority.substr(0, colon);
}

bool IsLoopback(const std::string& host) {
  std::string unused;
  return CheckListenAddress(absl::StrCat(host, ":0"), /*allow_remote=*/false,
                            &unused)
      .ok();
}

// `note`: what else there is to say where all is well.
void Answer(const absl::Status& status, httplib::Response* response,
            const std::string& note = "") {
  if (status.ok()) {
    return response->set_content(
        note.empty() ? "ok\n" : absl::StrCat("ok: ", note, "\n"), kTextType);
  }
  response->status = 503;
  response->set_content(absl::StrCat(status.message(), "\n"), kTextType);
}

// A page that a browser on this machine has open must not get at the daemon
// by giving its own host name our address (DNS rebinding).
httplib::Server::HandlerResponse CheckHost(const httplib::Request& request,
                                           httplib::Response& response) {
  const std::string host = HostOf(request.get_header_value("Host"));
  if (host.empty() || IsLoopback(host)) {
    return httplib::Server::HandlerResponse::Unhandled;
  }
  response.status = 403;
  response.set_content(
      absl::StrCat("[http] this daemon answers to this machine's own names "
                   "(localhost, 127.0.0.1, [::1]). Got '",
                   host, "'; see --http and --allow_remote.\n"),
      kTextType);
  return httplib::Server::HandlerResponse::Handled;
}

// As gRPC spells addresses, which is what Authenticator reads.
std::string PeerOf(const httplib::Request& request) {
  const bool v6 = absl::StrContains(request.remote_addr, ':');
  return v6 ? absl::StrCat("ipv6:[", request.remote_addr,
                           "]:", request.remote_port)
            : absl::StrCat("ipv4:", request.remote_addr, ":",
                           request.remote_port);
}

bool Forwarded(const httplib::Request& request) {
  return request.has_header("Forwarded") || request.has_header("Via") ||
         request.has_header("X-Forwarded-For");
}

}  // namespace

struct HttpServer::Running {
  Running(SessionRegistry* registry, const Watchdog* watchdog)
      : registry(registry), watchdog(watchdog), history(registry) {}

  void Configure(bool loopback);
  // Whose sessions the request's reader may see. False: it was answered with
  // an error.
  bool Identify(const httplib::Request& request, httplib::Response* response,
                Viewer* viewer);
  // The port that was bound; 0: none.
  int Bind(const std::string& host, int port);

  SessionRegistry* const registry;
  const Watchdog* const watchdog;
  const History history;
  bool everything = false;
  TlsFiles tls;
  std::string address;  // set before the first request
  HttpConnections server;
  std::thread thread;
};

bool HttpServer::Running::Identify(const httplib::Request& request,
                                   httplib::Response* response,
                                   Viewer* viewer) {
  viewer->all = everything;
  if (everything || registry->trust() == nullptr) return true;
  Authenticator::Call call;
  call.peer = PeerOf(request);
  call.listen = address;
  call.authorization = request.get_header_value("Authorization");
  const absl::StatusOr<std::optional<Peer>> reader =
      registry->trust()->Reader(call, Forwarded(request));
  if (!reader.ok()) {
    response->status = absl::IsUnavailable(reader.status()) ? 429 : 401;
    response->set_content(absl::StrCat(reader.status().message(), "\n"),
                          kTextType);
    return false;
  }
  if (reader->has_value()) {
    viewer->user = (*reader)->user.name;
    viewer->all = (*reader)->user.admin();
  }
  return true;
}

void HttpServer::Running::Configure(bool loopback) {
  using httplib::Request;
  using httplib::Response;
  server.set_socket_options(SetSocketOptions);
  server.set_payload_max_length(kMaxBodyBytes);
  server.set_default_headers({{"Content-Security-Policy", kContentPolicy},
                              {"X-Content-Type-Options", "nosniff"},
                              {"Cache-Control", "no-store"}});
  if (loopback) server.set_pre_routing_handler(CheckHost);
  server.Get("/metrics", [this](const Request& request, Response& response) {
    Viewer viewer;
    if (!Identify(request, &response, &viewer)) return;
    response.set_content(MetricsPage(registry, *watchdog, viewer, tls),
                         kMetricsType);
  });
  server.Get("/healthz", [this](const Request&, Response& response) {
    std::string busy;
    const absl::Status health = watchdog->health(&busy);
    Answer(health, &response, busy);
  });
  server.Get("/readyz", [this](const Request&, Response& response) {
    Answer(registry->Ready(), &response);
  });
  server.Get("/api/status", [this](const Request& request, Response& response) {
    Viewer viewer;
    if (!Identify(request, &response, &viewer)) return;
    response.set_content(StatusJson(registry, history, viewer),
                         "application/json");
  });
  for (const WebFile& file : WebFiles()) {
    server.Get(file.path, [file](const Request&, Response& response) {
      response.set_content(file.content.data(), file.content.size(), file.type);
    });
  }
}

int HttpServer::Running::Bind(const std::string& host, int port) {
  std::string bare = host;
  if (absl::StartsWith(bare, "[")) bare = bare.substr(1, bare.size() - 2);
  if (port == 0) return std::max(0, server.bind_to_any_port(bare));
  return server.bind_to_port(bare, port) ? port : 0;
}

HttpServer::HttpServer() = default;

HttpServer::~HttpServer() { Stop(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    SessionRegistry* registry, const Watchdog* watchdog,
    const Options& options) {
  std::string host;
  absl::Status status =
      CheckListenAddress(options.address, options.allow_remote, &host, "http");
  if (!status.ok()) return status;
  int port = 0;
  if (!absl::SimpleAtoi(options.address.substr(host.size() + 1), &port)) {
    return absl::InternalError("[http] the port was checked");
  }
  std::unique_ptr<HttpServer> result(new HttpServer);
  result->running_ = std::make_unique<Running>(registry, watchdog);
  Running* running = result->running_.get();
  running->everything = options.everything;
  running->tls = options.tls;
  running->Configure(IsLoopback(host));
  port = running->Bind(host, port);
  if (port == 0) return ListenFailure("http", options.address);
  result->address_ = absl::StrCat(host, ":", port);
  running->address = result->address_;
  running->server.set_address(result->address_);
  running->thread =
      std::thread([running] { running->server.listen_after_bind(); });
  // Its stop() does nothing before it runs.
  while (!running->server.is_running()) absl::SleepFor(absl::Milliseconds(1));
  return result;
}

void HttpServer::Stop() {
  if (running_ == nullptr) return;
  if (running_->thread.joinable()) {
    running_->server.stop();
    running_->thread.join();
    running_->server.Finish();
  }
  running_.reset();
}

}  // namespace holdfast
