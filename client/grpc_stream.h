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

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_GRPC_STREAM_H_
