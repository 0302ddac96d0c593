// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// GrpcConnection::Stream: one gRPC stream of a session; a session that was cut
// has had several. Messages are bytes, since batches are encoded by hand.
// Thread-safety: guarded by the connection's lock, but for `incoming`, which
// belongs to the thread that reads while a read is not under way.
#ifndef HOLDFAST_CLIENT_GRPC_STREAM_H_
#define HOLDFAST_CLIENT_GRPC_STREAM_H_

#include <memory>
#include <utility>

#include "client/grpc_connection.h"
#include "grpcpp/generic/generic_stub.h"

namespace holdfast::client {

// What a completion is of.
enum class StreamStep { kStart = 1, kRead, kWrite, kFinish };

struct GrpcConnection::Stream {
  explicit Stream(std::shared_ptr<grpc::Channel> channel)
      : stub(std::move(channel)) {}

  grpc::GenericStub stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
  grpc::ByteBuffer incoming;
  grpc::Status status;
  int outstanding = 0;  // completions to come
  bool started = false;
  bool writing = false;
  bool broken = false;  // nothing new is started; Finish when all are back
};

// Whether a cut connection explains the status, so that a new one may help.
bool IsCut(grpc::StatusCode code);
absl::Status FromGrpc(const grpc::Status& status);

std::shared_ptr<grpc::ChannelCredentials> ToChannelCredentials(
    const LoadedCredentials& credentials);
// The metadata that shows a token.
void AddToken(const std::string& token, grpc::ClientContext* context);
// What went wrong on the way to a daemon, in words for people.
absl::Status ExplainFailure(const std::string& address, double timeout_seconds,
                            const LoadedCredentials& credentials,
                            const absl::Status& status);

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_GRPC_STREAM_H_
