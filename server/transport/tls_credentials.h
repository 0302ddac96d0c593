// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// TLS for the gRPC server, from PEM files. What is wrong with them is said at
// the start, not at the first handshake. Renewed files are picked up within a
// minute.
// Thread-safety: LoadTls from one thread, the others from any.
#ifndef HOLDFAST_SERVER_TRANSPORT_TLS_CREDENTIALS_H_
#define HOLDFAST_SERVER_TRANSPORT_TLS_CREDENTIALS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/security/server_credentials.h"

namespace holdfast {

struct TlsFiles {
  std::string certificate;  // chain, the server's own first
  std::string key;
  std::string client_ca;  // "": clients are not asked for certificates
  bool require_client_certificate = false;  // else they may come without
};

// REQUIRES: some file is named.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> LoadTls(
    const TlsFiles& files);

// Whether the files could be used now; OK where none is named.
absl::Status CheckTls(const TlsFiles& files);

// Until when the certificate in the file, the first of a chain, is valid.
absl::StatusOr<absl::Time> CertificateExpiry(const std::string& path);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_TLS_CREDENTIALS_H_
