// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// GrpcMethods: a service that knows who calls before it reads a byte of what is
// asked, and so holds nothing for strangers. gRPC itself would take a request
// of the largest size before it says that there is one: on this side no method
// is a unary one, which on the wire is the same.
// Thread-safety: gRPC's threads, and of what they call any.
#ifndef HOLDFAST_SERVER_TRANSPORT_GRPC_METHODS_H_
#define HOLDFAST_SERVER_TRANSPORT_GRPC_METHODS_H_

#include <deque>
#include <functional>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/trust/user.h"

namespace holdfast {

// How many of a user's calls have a message on its way in at a time. Others
// wait for their turn, held back by HTTP/2: gRPC has a bound for the messages
// of all, and ends somebody's calls above it.
class MessageTurns {
 public:
  explicit MessageTurns(int most) : most_(most) {}

  // `read` is called, now or once another call's turn has ended.
  void Begin(const std::string& user, std::function<void()> read);
  void End(const std::string& user);

 private:
  struct Own {
    int active = 0;
    std::deque<std::function<void()>> waiting;
  };
  const int most_;
  std::mutex mutex_;
  absl::flat_hash_map<std::string, Own> users_;  // guarded by mutex_
};

class GrpcMethods : public grpc::Service {
 public:
  using Context = grpc::CallbackServerContext;
  using Bytes = grpc::ByteBuffer;
  using UpReactor = grpc::ServerReadReactor<Bytes>;
  using BothReactor = grpc::ServerBidiReactor<Bytes, Bytes>;

 protected:
  // The method of that path, "/package.Service/Method".
  void AddUp(const char* path,
             std::function<UpReactor*(Context*, Bytes* reply)> method);
  void AddBoth(const char* path, std::function<BothReactor*(Context*)> method);

 private:
  int count_ = 0;
};

// A call with one message each way. `serve` has the request of a peer who may
// call, and calls `finish` once, on any thread, when `reply` is filled.
using FinishRequest = std::function<void(const absl::Status&)>;
using ServeRequest = std::function<void(
    const Peer& peer, const grpc::ByteBuffer& request, FinishRequest finish)>;
grpc::ServerReadReactor<grpc::ByteBuffer>* NewRequest(
    const absl::StatusOr<Peer>& peer, MessageTurns* turns, ServeRequest serve);
// One that is over before it began.
grpc::ServerReadReactor<grpc::ByteBuffer>* NewAnswered(
    const absl::Status& status);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_GRPC_METHODS_H_
