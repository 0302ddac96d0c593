// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/connection.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "client/session.h"
#include "ops/op_schema.h"
#include "proto/version.h"

namespace holdfast::client {
namespace {

// All that this client speaks.
constexpr uint32_t kMinVersion = kMinProtocolVersion;
constexpr uint32_t kMaxVersion = kProtocolVersion;
constexpr char kFailure[] = "holdfast.v1.Status";

}  // namespace

absl::Status DaemonGone(const std::string& address, const std::string& reason) {
  return absl::UnavailableError(absl::StrCat(
      "[session] the daemon at ", address, " is gone (", reason,
      "). Tensors that only it held are lost. Start it again (holdfast serve) "
      "and connect anew."));
}

void Connection::NotePlace(const std::string& address,
                           const wire::HelloRequest& request) {
  place_.Set(address, hello().session_id(), request.session_name(),
             hello().has_grace_seconds()
                 ? hello().grace_seconds()
                 : std::max(0.0, request.grace_seconds()));
}

wire::HelloRequest MakeHello(const ConnectOptions& options) {
  wire::HelloRequest hello;
  hello.set_min_version(kMinVersion);
  hello.set_max_version(kMaxVersion);
  hello.set_client(options.client);
  hello.set_op_fingerprint(OpTableFingerprint());
  hello.set_session_name(options.session_name);
  hello.set_attach(options.attach);
  hello.set_attach_if_away(options.attach_if_away);
  hello.set_grace_seconds(options.grace_seconds);
  hello.set_default_grace(options.default_grace);
  hello.set_parent_token(options.parent_token);
  hello.add_features(kFeatureParts);
  hello.add_features(kFeatureOrder);
  return hello;
}

absl::Status CheckHello(const wire::HelloReply& reply,
                        const std::string& address) {
  if (reply.status().code() != 0) return ToAbslStatus(reply.status());
  if (reply.version() < kMinVersion || reply.version() > kMaxVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[connect] the daemon must speak a protocol version in ", kMinVersion,
        "..", kMaxVersion, ". Got ", reply.version(), " from ", reply.server(),
        " at ", address, ". Use the same version on both sides."));
  }
  return absl::OkStatus();
}

absl::Status ToAbslStatus(const wire::Status& status) {
  if (status.code() == 0) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.code()),
                      status.message());
  if (!status.op().empty() || status.op_sequence() != 0 ||
      !status.trace_id().empty()) {
    result.SetPayload(kFailure, absl::Cord(status.SerializeAsString()));
  }
  return result;
}

OpFailure OpFailureOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kFailure);
  wire::Status failure;
  if (!payload.has_value() || !failure.ParseFromString(std::string(*payload))) {
    return {};
  }
  return {failure.op(), failure.op_sequence(), failure.forward_op_sequence(),
          failure.trace_id()};
}

}  // namespace holdfast::client
