// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What every gRPC call of a client needs: credentials, and what its status
// means. Thread-safety: functions from any thread.
#ifndef HOLDFAST_CLIENT_GRPC_CALLS_H_
#define HOLDFAST_CLIENT_GRPC_CALLS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/credentials.h"
#include "grpcpp/grpcpp.h"

namespace holdfast::client {

// Whether a cut connection explains the error, so that a new one may help.
bool IsCut(const grpc::Status& status);
absl::Status FromGrpc(const grpc::Status& status);
// Whether a connection was made and broke then, as far as gRPC's words tell.
bool BrokeAfterwards(const absl::Status& status);

std::shared_ptr<grpc::ChannelCredentials> ToChannelCredentials(
    const LoadedCredentials& credentials);
// What gRPC calls the address: "grpc+unix:/path" is its "unix:/path".
std::string GrpcTarget(const std::string& address);
// The metadata that shows a token.
void AddToken(const std::string& token, grpc::ClientContext* context);
// What went wrong on the way to a daemon, in words for people.
absl::Status ExplainFailure(const std::string& address, double timeout_seconds,
                            const LoadedCredentials& credentials,
                            const absl::Status& status);

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_GRPC_CALLS_H_
