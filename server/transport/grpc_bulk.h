// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Upload and Download: bulk bytes beside the stream, in chunks, so that they
// never hold up its batches. An upload counts against its session's limit from
// its first chunk; a download leaves the server's memory only when its client
// has all of it.
// Lifetime: each call owns itself. Thread-safety: gRPC's threads.
#ifndef HOLDFAST_SERVER_TRANSPORT_GRPC_BULK_H_
#define HOLDFAST_SERVER_TRANSPORT_GRPC_BULK_H_

#include <cstdint>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "proto/holdfast.pb.h"
#include "server/session/session_registry.h"
#include "server/transport/grpc_methods.h"
#include "server/transport/grpc_stream.h"

namespace holdfast {

// Bytes that are on their way in, by session.
class UploadBudget {
 public:
  explicit UploadBudget(const ServerLimits& limits);
  absl::Status Reserve(uint64_t session, uint64_t bytes);
  void Return(uint64_t session, uint64_t bytes);

 private:
  const uint64_t limit_;  // per session
  std::mutex mutex_;
  absl::flat_hash_map<uint64_t, uint64_t> reserved_;
};

// Messages are raw: their bytes go from the network's buffers to their place.
// `reply` receives an UploadReply.
// `peer`: who calls; its error is the call's.
grpc::ServerReadReactor<grpc::ByteBuffer>* NewUpload(
    SessionRegistry* registry, const absl::StatusOr<Peer>& peer,
    UploadBudget* budget, MessageTurns* turns, grpc::ByteBuffer* reply);

// The request is a DownloadRequest; chunks are written as raw DownloadChunk
// messages that point into the session's bytes.
StreamReactor* NewDownload(SessionRegistry* registry,
                           const absl::StatusOr<Peer>& peer,
                           MessageTurns* turns);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_GRPC_BULK_H_
