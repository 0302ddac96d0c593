// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Credentials: what a client shows a daemon over gRPC, and how it knows the
// daemon. Local sockets need none: the kernel vouches for both sides.
// Thread-safety: functions from any thread.
#ifndef HOLDFAST_CLIENT_CREDENTIALS_H_
#define HOLDFAST_CLIENT_CREDENTIALS_H_

#include <string>

#include "absl/status/statusor.h"

namespace holdfast::client {

struct Credentials {
  std::string token;        // hf_...
  std::string ca;           // PEM file of who signed the daemon's certificate,
                            // or "system"; "": no TLS
  std::string certificate;  // PEM file of our own chain, for mutual TLS
  std::string key;          // PEM file
  bool allow_plaintext_token = false;  // to another machine, without TLS

  bool empty() const {
    return token.empty() && ca.empty() && certificate.empty() && key.empty() &&
           !allow_plaintext_token;
  }
};

// What to use for `address`: `given`; where that is empty, what this process
// gave for the same address before; for each field that is still empty,
// HOLDFAST_TOKEN (else the text of HOLDFAST_TOKEN_FILE), HOLDFAST_CA,
// HOLDFAST_CERTIFICATE, HOLDFAST_KEY; over a Unix socket the token alone.
absl::StatusOr<Credentials> FindCredentials(const std::string& address,
                                            const Credentials& given);

// The same with files read: what gRPC takes.
struct LoadedCredentials {
  std::string token;
  bool tls = false;
  std::string roots, certificate, key;  // PEM
};
// Refuses to send a token in the clear to another machine, a certificate that
// has expired, files that are not there.
absl::StatusOr<LoadedCredentials> LoadCredentials(const std::string& address,
                                                  const Credentials& given);

// Why TLS with the daemon at "host:port" does not come about, found out by
// trying it; "" if nothing is wrong with it. Takes a few seconds at most.
std::string ExplainTls(const std::string& address,
                       const LoadedCredentials& credentials);

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_CREDENTIALS_H_
