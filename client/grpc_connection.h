// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// GrpcConnection: a session over the network. Commands collect into batches
// while a write is on its way, so that a lone op leaves at once and a stream
// of them travels in few messages. Batches are kept until the server says that
// it has applied them; after a cut the connection is made anew and both sides
// go on where they were, each op applied exactly once. A fork is a cut that the
// client makes itself (grpc_fork.h).
// Thread-safety: as Connection says. One thread of its own handles the stream;
// callers start writes themselves when none is under way.
#ifndef HOLDFAST_CLIENT_GRPC_CONNECTION_H_
#define HOLDFAST_CLIENT_GRPC_CONNECTION_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "client/connection.h"
#include "client/credentials.h"
#include "client/grpc_fork.h"
#include "grpcpp/grpcpp.h"
#include "proto/holdfast.grpc.pb.h"
#include "proto/steady_time.h"

namespace holdfast::client {

class GrpcConnection final : public Connection, private ForkPausable {
 public:
  // Says Hello to "host:port".
  static absl::StatusOr<std::unique_ptr<Connection>> Open(
      const std::string& address, const wire::HelloRequest& hello,
      double timeout_seconds, LoadedCredentials credentials = {},
      std::optional<double> reconnect_seconds = std::nullopt);
  ~GrpcConnection() override;

  const char* transport() const override { return "grpc"; }
  const wire::HelloReply& hello() const override { return hello_; }

  absl::Status Send(EncodedCommand command) override;
  absl::StatusOr<bool> NextEvent(SteadyTime deadline,
                                 wire::Event* event) override;
  absl::Status Watch(absl::Duration timeout) override;
  void Wake() override;

  uint64_t inline_limit() const override;
  absl::Status Upload(const void* data, uint64_t bytes, BlockMarks* marks,
                      wire::Put* put) override;
  absl::Status Download(uint64_t id, uint64_t bytes,
                        std::string* data) override;
  void Discard(uint64_t download) override;
  absl::StatusOr<MappedBlock> Allocate(uint64_t bytes) override;
  absl::StatusOr<MappedBytes> Locate(const wire::Place& place) override;
  absl::StatusOr<wire::StatsReply> Stats(uint64_t memory_of) override;
  absl::Status Goodbye(Parting parting) override;
  absl::Status Cancel(uint64_t through, const std::string& where) override;

 private:
  struct Stream;
  // A batch in its final form, kept until it is acknowledged.
  struct SealedBatch {
    uint64_t sequence = 0;
    grpc::Slice bytes;
  };
  using Stub = wire::Holdfast::Stub;

  GrpcConnection(std::string address, wire::HelloRequest request,
                 double timeout_seconds, LoadedCredentials credentials,
                 std::optional<double> reconnect_seconds);

  // ---- around a fork
  void PauseForFork() override;
  void ResumeAfterFork() override;

  // ---- own thread
  void StartThread(std::function<void()> body);
  void Loop();
  // False: the stream has ended and so has the connection.
  bool Handle(void* tag, bool ok);
  void HandleEvent(wire::Event event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reconnect; false: there is no stream, and unless paused the session is
  // over.
  bool Rejoin(const grpc::Status& cause);
  // Says Hello again until it works, time is up or the server refuses.
  absl::Status Reconnect(const grpc::Status& cause);
  absl::Status TryAgain(std::string reason);
  absl::Duration ReconnectTimeout();
  // What the user hears of a reconnecting that failed or was refused.
  absl::Status GiveUp(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the user, once for each cut, that their program waits.
  void SayWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // ---- any
  // A fresh channel: an old one would sit out its own back-off.
  void MakeChannel() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Stub> stub();
  std::shared_ptr<grpc::Channel> channel();
  absl::Status SayHello(absl::Duration timeout, wire::HelloReply* reply);
  // The one that opens the session, into hello_.
  absl::Status SayFirstHello();
  // Shows the token, in each call.
  void Authorize(grpc::ClientContext* context) const;
  // The own thread is to end, or to begin nothing new.
  bool Leaving() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || paused_;
  }
  // Destroys all that is gRPC's, a connection that is being made after at most
  // `patience`. REQUIRES: the own thread has ended.
  void DropGrpc(absl::Duration patience) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartStream() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts the next write if there is something to send and none under way.
  void Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Turns what has collected into a batch.
  void Seal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Highest event to acknowledge. One that names a download is not received
  // before its bytes are, so that a cut transfer can be repeated.
  uint64_t Acknowledgeable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Acknowledges now, without waiting for a command to carry it.
  void Tell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropAcknowledged(uint64_t sequence)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Congested() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const absl::Status& reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs `attempt` until it does not fail for the network's sake.
  template <typename Attempt>
  absl::Status Retry(const Attempt& attempt);

  const std::string address_;
  const wire::HelloRequest request_;
  const double timeout_seconds_;
  const std::optional<double> reconnect_seconds_;  // none: the grace period
  const LoadedCredentials credentials_;
  wire::HelloReply hello_;
  std::unique_ptr<grpc::CompletionQueue> queue_;  // null while paused
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable changed_;  // events, acknowledgements, end
  std::condition_variable watch_;    // Wake, end
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Stub> stub_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Stream> stream_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext* hello_context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);

  // While there is no connection.
  struct LostConnection {
    SteadyTime since;
    absl::Time wall_since;
    bool told = false;
  };
  std::optional<LostConnection> lost_ ABSL_GUARDED_BY(mutex_);

  // Commands not yet in a batch, behind kBatchHeadroom bytes.
  std::string collected_ ABSL_GUARDED_BY(mutex_);
  std::deque<SealedBatch> sealed_ ABSL_GUARDED_BY(mutex_);
  size_t written_ ABSL_GUARDED_BY(mutex_) = 0;  // prefix of sealed_ sent
  uint64_t sealed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 1;

  std::deque<wire::Event> events_ ABSL_GUARDED_BY(mutex_);
  uint64_t received_event_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t told_event_ ABSL_GUARDED_BY(mutex_) = 0;  // acknowledged so far
  std::map<uint64_t, uint64_t> downloads_
      ABSL_GUARDED_BY(mutex_);  // event -> download yet to be fetched
  uint64_t next_upload_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_GRPC_CONNECTION_H_
