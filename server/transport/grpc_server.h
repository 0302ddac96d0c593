// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// GrpcServer: the daemon's door for clients anywhere: the Holdfast service
// over gRPC's callback API, with the standard health and reflection services.
// Thread-safety: Start, Stop and the destructor from one thread.
#ifndef HOLDFAST_SERVER_TRANSPORT_GRPC_SERVER_H_
#define HOLDFAST_SERVER_TRANSPORT_GRPC_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/session/session_registry.h"
#include "server/transport/tls_credentials.h"
#include "server/trust/authenticator.h"

namespace holdfast {

class GrpcServer {
 public:
  struct Options {
    std::string address;         // "host:port"; port 0: any free one
    bool allow_remote = false;   // else only this host's own addresses
    TlsFiles tls = {};           // none: no encryption
    uint64_t max_strangers = 0;  // see GrpcListener
  };
  // `registry` must outlive the server.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      SessionRegistry* registry, const Options& options);
  ~GrpcServer();  // stops
  // What Start would refuse of the address and of who may come there; `host`
  // receives the address's host.
  static absl::Status Check(const Options& options, const Authenticator& trust,
                            std::string* host);

  // Health checks are told from now on that there is no service.
  void StopServing();
  // Takes no new calls, gives those that run `grace` to end, then cancels
  // them. Idempotent.
  void Stop(absl::Duration grace);
  // "host:port" with the port that was bound.
  const std::string& address() const { return address_; }

 private:
  class Service;
  class AdminService;
  struct Running;

  GrpcServer();
  // OK where peers from elsewhere are told apart, or need not be.
  static absl::Status CheckRemoteTrust(const Options& options,
                                       const Authenticator& trust);

  std::string address_;
  std::unique_ptr<Running> running_;
};

// InvalidArgument unless `address` is host:port, its host this machine's own
// loopback (or `allow_remote` given). `host` receives the host. `flag`: what
// gave the address.
absl::Status CheckListenAddress(const std::string& address, bool allow_remote,
                                std::string* host,
                                absl::string_view flag = "listen");

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_GRPC_SERVER_H_
