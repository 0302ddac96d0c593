// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/admin.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/connection.h"
#include "client/default_address.h"
#include "client/grpc_calls.h"
#include "client/grpc_fork.h"
#include "client/local_socket.h"
#include "google/protobuf/util/json_util.h"
#include "proto/admin.grpc.pb.h"
#include "proto/steady_time.h"

namespace holdfast::client {
namespace {

absl::StatusOr<wire::AdminReply> AskLocal(const std::string& path,
                                          const ConnectOptions& options,
                                          const wire::AdminRequest& request) {
  absl::StatusOr<std::unique_ptr<LocalSocket>> socket =
      LocalSocket::Connect(path);
  if (!socket.ok()) {
    return absl::UnavailableError(socket.status().message());
  }
  wire::LocalRequest message;
  *message.mutable_admin() = request;
  absl::StatusOr<wire::LocalReply> reply = (*socket)->Call(
      message, SteadyNow() + absl::Seconds(options.timeout_seconds));
  if (!reply.ok()) return reply.status();
  return std::move(*reply->mutable_admin());
}

absl::StatusOr<wire::AdminReply> AskRemote(const std::string& address,
                                           const ConnectOptions& options,
                                           const wire::AdminRequest& request) {
  absl::Status usable = GrpcUsable();
  if (!usable.ok()) return usable;
  absl::StatusOr<LoadedCredentials> credentials =
      LoadCredentials(address, options.credentials);
  if (!credentials.ok()) return credentials.status();
  const GrpcUse use;
  const auto stub = wire::HoldfastAdmin::NewStub(
      grpc::CreateChannel(address, ToChannelCredentials(*credentials)));
  grpc::ClientContext context;
  AddToken(credentials->token, &context);
  context.set_deadline(
      absl::ToChronoTime(absl::Now() + absl::Seconds(options.timeout_seconds)));
  wire::AdminReply reply;
  const grpc::Status status = stub->Ask(&context, request, &reply);
  if (!status.ok()) {
    return ExplainFailure(address, options.timeout_seconds, *credentials,
                          FromGrpc(status));
  }
  return reply;
}

}  // namespace

absl::StatusOr<std::string> AskAdmin(const ConnectOptions& options,
                                     const std::string& request) {
  namespace util = google::protobuf::util;
  wire::AdminRequest message;
  if (const auto status = util::JsonStringToMessage(request, &message);
      !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[admin] the request must be an AdminRequest in JSON. Got ", request,
        ": ", std::string(status.message()), "."));
  }
  absl::StatusOr<Target> target = ParseAddress(options.address);
  if (!target.ok()) return target.status();
  absl::StatusOr<wire::AdminReply> reply =
      target->kind == Target::kNetwork
          ? AskRemote(target->where, options, message)
          : AskLocal(target->where, options, message);
  if (!reply.ok()) return reply.status();
  util::JsonPrintOptions print;
  print.preserve_proto_field_names = true;
  print.always_print_primitive_fields = true;
  std::string json;
  if (!util::MessageToJsonString(*reply, &json, print).ok()) {
    return absl::InternalError("[admin] the answer cannot be shown.");
  }
  return json;
}

}  // namespace holdfast::client
