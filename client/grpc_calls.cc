// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/grpc_calls.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/default_address.h"
#include "grpc/support/log.h"

namespace holdfast::client {

bool IsCut(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::ABORTED:
      return true;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      // By the daemon's gRPC, which is short of memory for messages, and not
      // by the daemon: the session knows nothing of it.
      return absl::StartsWith(status.error_message(), "Received RST_STREAM");
    default:
      return false;
  }
}

absl::Status FromGrpc(const grpc::Status& status) {
  // Not by the user, as kCancelled means here: a daemon that ends cancels the
  // calls that it has not answered.
  if (status.error_code() == grpc::StatusCode::CANCELLED) {
    return absl::UnavailableError(
        absl::StrCat("the call was cut off: ", status.error_message()));
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

bool BrokeAfterwards(const absl::Status& status) {
  return absl::StrContains(status.message(), "Socket closed") ||
         absl::StrContains(status.message(), "reset by peer") ||
         absl::StrContains(status.message(), "Broken pipe");
}

std::shared_ptr<grpc::ChannelCredentials> ToChannelCredentials(
    const LoadedCredentials& credentials) {
  // What gRPC prints of a failed handshake, our errors say; it would stand
  // between a program's own lines, once for each attempt.
  [[maybe_unused]] static const bool silent = [] {
    if (std::getenv("GRPC_VERBOSITY") != nullptr) return false;
    gpr_set_log_verbosity(
        static_cast<gpr_log_severity>(GPR_LOG_SEVERITY_ERROR + 1));
    return true;
  }();
  if (!credentials.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = credentials.roots;
  options.pem_private_key = credentials.key;
  options.pem_cert_chain = credentials.certificate;
  return grpc::SslCredentials(options);
}

std::string GrpcTarget(const std::string& address) {
  constexpr absl::string_view kGrpc = "grpc+";
  return absl::StartsWith(address, kGrpcOverSocket)
             ? address.substr(kGrpc.size())
             : address;
}

void AddToken(const std::string& token, grpc::ClientContext* context) {
  if (token.empty()) return;
  context->AddMetadata("authorization", absl::StrCat("Bearer ", token));
}

absl::Status ExplainFailure(const std::string& address, double timeout_seconds,
                            const LoadedCredentials& credentials,
                            const absl::Status& status) {
  if (absl::IsUnimplemented(status)) {
    return absl::UnavailableError(
        absl::StrCat("[connect] what answers at ", address,
                     " must be a Holdfast daemon that knows the request. Got: ",
                     status.message(), "."));
  }
  const bool unreachable =
      absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  // What the daemon itself says needs no explanation.
  if (!unreachable || absl::StartsWith(status.message(), "[trust]")) {
    return status;
  }
  const std::string tls = ExplainTls(address, credentials);
  if (!tls.empty()) {
    return absl::UnavailableError(absl::StrCat("[connect] ", tls, "."));
  }
  return absl::UnavailableError(absl::StrCat(
      "[connect] a daemon must answer at ", address, " within ",
      timeout_seconds, " s. Got: ", status.message(),
      ". Is holdfastd running there (holdfast serve --listen), and is the "
      "address right?"));
}

}  // namespace holdfast::client
