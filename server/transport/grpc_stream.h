// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// GrpcStream: one open Stream call: batches are decoded on gRPC's threads
// and wait here, a bounded number of them, for the worker; beyond that the
// stream is not read, which holds the client back through HTTP/2's flow
// control. Events are written one at a time, in order, and wait here too,
// bounded. GrpcConnection is the session's end of it. Lifetime: the call keeps
// its GrpcStream alive until OnDone, the connection does until it is destroyed;
// either may go first. Thread-safety: reactions on gRPC's threads, the rest on
// the worker's.
#ifndef HOLDFAST_SERVER_TRANSPORT_GRPC_STREAM_H_
#define HOLDFAST_SERVER_TRANSPORT_GRPC_STREAM_H_

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/alarm.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "proto/holdfast.pb.h"
#include "server/session/connection.h"
#include "server/transport/hang_up.h"

namespace holdfast {

class Worker;

using StreamReactor =
    grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

class GrpcStream final : public StreamReactor {
 public:
  // Of one message, as gRPC has it while it comes.
  static constexpr size_t kMaxMessageBytes = 4 << 20;
  // Of the batches and events that wait in one stream.
  static constexpr size_t kMaxBatches = 64;
  static constexpr size_t kMaxBatchBytes = 16 << 20;
  static constexpr size_t kMaxEvents = 1024;
  static constexpr size_t kMaxEventBytes = 4 << 20;

  static std::shared_ptr<GrpcStream> Create(
      grpc::CallbackServerContext* context, Worker* worker,
      std::shared_ptr<ConnectionLife>);
  ~GrpcStream() override;

  // Begins to read; once, when the session has its connection.
  void Start();
  // It is over, or about to be. Any thread.
  bool closing() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return closing_;
  }

  // ---- worker thread; see Connection
  absl::StatusOr<const v1::Batch*> NextBatch();
  int64_t batch_received() const;
  size_t batch_bytes() const;
  bool HasBatch() const;
  size_t queued_bytes() const;
  bool Arm();
  void Disarm();
  // After a refusal the worker is woken when there is room again.
  bool Send(const v1::Event& event);
  bool CanSend() const { return !refused_.load(std::memory_order_acquire); }
  void Close(const absl::Status& reason);

 private:
  // A decoded batch; its memory is used again.
  struct Slot;
  struct Outgoing {
    grpc::ByteBuffer message;
    size_t bytes;
  };
  // What a thread does once it has let go of the lock.
  struct Todo {
    bool read = false;
    bool write = false;
    std::optional<grpc::Status> finish;
    bool wake = false;
    bool report = false;
  };

  GrpcStream(grpc::CallbackServerContext* context, Worker* worker,
             std::shared_ptr<ConnectionLife> life);

  // Reactions.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  absl::StatusOr<std::unique_ptr<Slot>> ParseIncoming();
  // With the lock held: decide; without it: act.
  void PlanRead(Todo* todo);
  void PlanWrite(Todo* todo);
  void PlanFinish(Todo* todo);
  void PlanWake(Todo* todo);
  void EndNow(Todo* todo);  // the client is gone
  void Act(const Todo& todo);

  grpc::CallbackServerContext* const context_;
  Worker* const worker_;
  const std::shared_ptr<ConnectionLife> life_;

  std::atomic<bool> has_batch_{false};  // changed under the lock
  // The last Send returned false, and there is no room since. The same.
  std::atomic<bool> refused_{false};

  std::unique_ptr<Slot> current_;  // worker thread: what NextBatch returned
  grpc::ByteBuffer incoming_;      // of the read under way
  grpc::ByteBuffer outgoing_;      // of the write under way

  mutable std::mutex mutex_;
  std::shared_ptr<GrpcStream> self_;  // until OnDone
  std::deque<std::unique_ptr<Slot>> batches_;
  size_t batch_bytes_ = 0;
  std::vector<std::unique_ptr<Slot>> free_;
  absl::Status broken_;  // the client broke the protocol: after the batches
  std::deque<Outgoing> events_;
  size_t event_bytes_ = 0;
  size_t outgoing_bytes_ = 0;
  bool armed_ = false;
  bool may_read_ = false;   // started, and the client still sends
  bool reading_ = false;    // a read is under way, or about to be
  int starting_reads_ = 0;  // of those, threads still inside StartRead
  bool writing_ = false;    // a write is under way, or about to be
  bool closing_ = false;
  bool finished_ = false;
  bool done_ = false;
  grpc::Status final_status_;
  std::unique_ptr<grpc::Alarm> linger_;
};

class GrpcConnection final : public Connection {
 public:
  // Sets life->connection.
  // `look`: see Connection.
  GrpcConnection(std::shared_ptr<GrpcStream> stream,
                 std::shared_ptr<ConnectionLife> life,
                 std::function<bool()> look);
  ~GrpcConnection() override;

  absl::string_view transport() const override { return "grpc"; }
  std::function<bool()> hang_up_look() const override { return look_; }
  absl::StatusOr<const v1::Batch*> NextBatch() override {
    return stream_->NextBatch();
  }
  int64_t batch_received() const override { return stream_->batch_received(); }
  size_t batch_bytes() const override { return stream_->batch_bytes(); }
  bool HasBatch() override { return stream_->HasBatch(); }
  size_t queued_bytes() const override { return stream_->queued_bytes(); }
  bool Arm() override { return stream_->Arm(); }
  void Disarm() override { stream_->Disarm(); }
  bool Send(const v1::Event& event) override { return stream_->Send(event); }
  bool CanSend() override { return stream_->CanSend(); }
  void Close(const absl::Status& reason) override { stream_->Close(reason); }

 private:
  const std::shared_ptr<GrpcStream> stream_;
  const std::shared_ptr<ConnectionLife> life_;
  const std::function<bool()> look_;
};

// absl's codes are gRPC's.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_GRPC_STREAM_H_
