// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/grpc_methods.h"

#include <utility>

#include "grpcpp/impl/codegen/server_callback_handlers.h"
#include "server/transport/grpc_stream.h"
#include "server/transport/reaction_order.h"

namespace holdfast {

// ---- turns

void MessageTurns::Begin(const std::string& user, std::function<void()> read) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Own& own = users_[user];
    if (own.active >= most_) {
      own.waiting.push_back(std::move(read));
      return;
    }
    ++own.active;
  }
  read();
}

void MessageTurns::End(const std::string& user) {
  std::function<void()> next;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = users_.find(user);
    Own& own = it->second;
    if (!own.waiting.empty()) {
      next = std::move(own.waiting.front());
      own.waiting.pop_front();
    } else if (--own.active == 0) {
      users_.erase(it);
    }
  }
  if (next != nullptr) next();
}

// ---- methods

void GrpcMethods::AddUp(
    const char* path,
    std::function<UpReactor*(Context*, Bytes* reply)> method) {
  using grpc::internal::RpcMethod;
  AddMethod(new grpc::internal::RpcServiceMethod(
      path, RpcMethod::CLIENT_STREAMING, nullptr));
  MarkMethodRawCallback(
      count_++,
      new grpc::internal::CallbackClientStreamingHandler<Bytes, Bytes>(
          std::move(method)));
}

void GrpcMethods::AddBoth(const char* path,
                          std::function<BothReactor*(Context*)> method) {
  using grpc::internal::RpcMethod;
  AddMethod(new grpc::internal::RpcServiceMethod(
      path, RpcMethod::BIDI_STREAMING, nullptr));
  MarkMethodRawCallback(
      count_++,
      new grpc::internal::CallbackBidiHandler<Bytes, Bytes>(std::move(method)));
}

// ---- requests

namespace {

// Lifetime: it owns itself.
class Request final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  explicit Request(const absl::Status& status) { Answer(status); }
  Request(Peer peer, MessageTurns* turns, ServeRequest serve)
      : peer_(std::move(peer)), turns_(turns), serve_(std::move(serve)) {
    turns_->Begin(peer_.user.name, [this] {
      PrecedeReactions(this);
      StartRead(&message_);
    });
  }

  void OnReadDone(bool ok) override {
    FollowReactions(this);
    turns_->End(peer_.user.name);
    if (!ok) {
      return Answer(absl::InvalidArgumentError("[grpc] a request is missing."));
    }
    serve_(peer_, message_,
           [this](const absl::Status& status) { Answer(status); });
  }
  void OnDone() override {
    FollowReactions(this);
    delete this;
  }

 private:
  void Answer(const absl::Status& status) {
    PrecedeReactions(this);
    Finish(ToGrpcStatus(status));
  }

  const Peer peer_;
  MessageTurns* const turns_ = nullptr;
  const ServeRequest serve_;
  grpc::ByteBuffer message_;
};

}  // namespace

grpc::ServerReadReactor<grpc::ByteBuffer>* NewRequest(
    const absl::StatusOr<Peer>& peer, MessageTurns* turns, ServeRequest serve) {
  return peer.ok() ? new Request(*peer, turns, std::move(serve))
                   : new Request(peer.status());
}

grpc::ServerReadReactor<grpc::ByteBuffer>* NewAnswered(
    const absl::Status& status) {
  return new Request(status);
}

}  // namespace holdfast
