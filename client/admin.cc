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
#include "proto/holdfast.grpc.pb.h"
#include "proto/steady_time.h"

namespace holdfast::client {
namespace {

absl::StatusOr<wire::LocalReply> CallLocal(const Target& target,
                                           const ConnectOptions& options,
                                           const wire::LocalRequest& message) {
  std::string running;
  absl::StatusOr<std::unique_ptr<LocalSocket>> socket = nullptr;
  if (target.kind == Target::kAny) *socket = FindRunning(&running);
  if (*socket == nullptr) socket = LocalSocket::Connect(target.where);
  if (!socket.ok()) {
    return absl::UnavailableError(socket.status().message());
  }
  return (*socket)->Call(message,
                         SteadyNow() + absl::Seconds(options.timeout_seconds));
}

// `call(channel, context)` makes the call of a stub of its own.
template <typename Call>
absl::Status CallRemote(const std::string& address,
                        const ConnectOptions& options, const Call& call) {
  absl::Status usable = GrpcUsable();
  if (!usable.ok()) return usable;
  absl::StatusOr<LoadedCredentials> credentials =
      LoadCredentials(address, options.credentials);
  if (!credentials.ok()) return credentials.status();
  const GrpcUse use;
  const auto channel = grpc::CreateChannel(GrpcTarget(address),
                                           ToChannelCredentials(*credentials));
  grpc::ClientContext context;
  AddToken(credentials->token, &context);
  context.set_deadline(
      absl::ToChronoTime(absl::Now() + absl::Seconds(options.timeout_seconds)));
  const grpc::Status status = call(channel, &context);
  if (status.ok()) return absl::OkStatus();
  return ExplainFailure(address, options.timeout_seconds, *credentials,
                        FromGrpc(status));
}

absl::StatusOr<wire::AdminReply> Ask(const ConnectOptions& options,
                                     const wire::AdminRequest& request) {
  absl::StatusOr<Target> target = ParseAddress(options.address);
  if (!target.ok()) return target.status();
  if (target->kind != Target::kNetwork) {
    wire::LocalRequest message;
    *message.mutable_admin() = request;
    absl::StatusOr<wire::LocalReply> reply =
        CallLocal(*target, options, message);
    if (!reply.ok()) return reply.status();
    return std::move(*reply->mutable_admin());
  }
  wire::AdminReply reply;
  const absl::Status status = CallRemote(
      target->where, options, [&](const auto& channel, auto* context) {
        return wire::HoldfastAdmin::NewStub(channel)->Ask(context, request,
                                                          &reply);
      });
  if (!status.ok()) return status;
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
  absl::StatusOr<wire::AdminReply> reply = Ask(options, message);
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

absl::StatusOr<std::string> AskStats(const ConnectOptions& options) {
  absl::StatusOr<Target> target = ParseAddress(options.address);
  if (!target.ok()) return target.status();
  if (target->kind != Target::kNetwork) {
    wire::LocalRequest message;
    message.mutable_stats();
    absl::StatusOr<wire::LocalReply> reply =
        CallLocal(*target, options, message);
    if (!reply.ok()) return reply.status();
    return reply->stats().SerializeAsString();
  }
  wire::StatsReply reply;
  const absl::Status status = CallRemote(
      target->where, options, [&](const auto& channel, auto* context) {
        return wire::Holdfast::NewStub(channel)->Stats(
            context, wire::StatsRequest(), &reply);
      });
  if (!status.ok()) return status;
  return reply.SerializeAsString();
}

absl::StatusOr<double> NameSession(const ConnectOptions& options,
                                   const std::string& token,
                                   const std::string& name,
                                   double grace_seconds) {
  wire::AdminRequest request;
  wire::AdminRequest::NameSession* naming = request.mutable_name_session();
  naming->set_session_token(token);
  naming->set_name(name);
  naming->set_grace_seconds(grace_seconds);
  absl::StatusOr<wire::AdminReply> reply = Ask(options, request);
  if (!reply.ok()) return reply.status();
  return reply->grace_seconds();
}

}  // namespace holdfast::client
