// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/flag_values.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/limits/config_file.h"
#include "server/transport/grpc_server.h"

ABSL_DECLARE_FLAG(std::string, listen);
ABSL_DECLARE_FLAG(bool, allow_remote);
ABSL_DECLARE_FLAG(std::string, http);
ABSL_DECLARE_FLAG(std::string, socket_mode);
ABSL_DECLARE_FLAG(std::string, config);
ABSL_DECLARE_FLAG(std::string, token_file);
ABSL_DECLARE_FLAG(std::string, tls_certificate);
ABSL_DECLARE_FLAG(std::string, tls_key);
ABSL_DECLARE_FLAG(std::string, tls_client_ca);
ABSL_DECLARE_FLAG(bool, allow_anonymous);
ABSL_DECLARE_FLAG(bool, allow_plaintext_tokens);

namespace holdfast {
namespace {

absl::Status CheckHttp() {
  const std::string address = absl::GetFlag(FLAGS_http);
  std::string host;
  if (address.empty()) return absl::OkStatus();
  return CheckListenAddress(address, absl::GetFlag(FLAGS_allow_remote), &host,
                            "http");
}

absl::Status CheckConfigurationFile() {
  const std::string path = absl::GetFlag(FLAGS_config);
  return path.empty() ? absl::OkStatus() : ReadConfiguration(path).status();
}

// --token_file, and --listen with what then asks for credentials.
absl::Status CheckTrust() {
  const absl::StatusOr<std::shared_ptr<Authenticator>> trust =
      MakeAuthenticator();
  if (!trust.ok()) return trust.status();
  const GrpcServer::Options options = {absl::GetFlag(FLAGS_listen),
                                       absl::GetFlag(FLAGS_allow_remote),
                                       TlsFlags()};
  std::string host;
  if (options.address.empty()) return absl::OkStatus();
  return GrpcServer::Check(options, **trust, &host);
}

}  // namespace

absl::StatusOr<mode_t> SocketMode() {
  const std::string text = absl::GetFlag(FLAGS_socket_mode);
  char* end = nullptr;
  const unsigned long mode = std::strtoul(text.c_str(), &end, 8);
  if (text.empty() || *end != '\0' || mode > 0777 || (mode & 0600) != 0600) {
    return absl::InvalidArgumentError(
        absl::StrCat("[local] --socket_mode must be an octal mode such as 0600 "
                     "or 0660. Got '",
                     text, "'."));
  }
  return static_cast<mode_t>(mode);
}

TlsFiles TlsFlags() {
  TlsFiles files;
  files.certificate = absl::GetFlag(FLAGS_tls_certificate);
  files.key = absl::GetFlag(FLAGS_tls_key);
  files.client_ca = absl::GetFlag(FLAGS_tls_client_ca);
  files.require_client_certificate = absl::GetFlag(FLAGS_token_file).empty();
  return files;
}

absl::StatusOr<std::shared_ptr<Authenticator>> MakeAuthenticator() {
  Authenticator::Options options;
  options.token_file = absl::GetFlag(FLAGS_token_file);
  options.client_certificates = !absl::GetFlag(FLAGS_tls_client_ca).empty();
  options.allow_anonymous = absl::GetFlag(FLAGS_allow_anonymous);
  options.allow_plaintext_tokens = absl::GetFlag(FLAGS_allow_plaintext_tokens);
  return Authenticator::Create(std::move(options));
}

int CheckConfiguration() {
  int mistakes = 0;
  for (const absl::Status& status :
       {SocketMode().status(), CheckConfigurationFile(), CheckTrust(),
        CheckTls(TlsFlags()), CheckHttp()}) {
    if (status.ok()) continue;
    ++mistakes;
    std::fprintf(stderr, "holdfastd: %s\n",
                 std::string(status.message()).c_str());
  }
  if (mistakes == 0) std::puts("holdfastd: the configuration can be used");
  return mistakes == 0 ? 0 : 1;
}

}  // namespace holdfast
