// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// FakeConnection: a transport for unit tests that keeps what was sent and
// answers with what the test says, and a session over it.
// Thread-safety: FakeConnection may be used from several threads.
#ifndef HOLDFAST_CLIENT_FAKE_CONNECTION_TEST_H_
#define HOLDFAST_CLIENT_FAKE_CONNECTION_TEST_H_

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "client/connection.h"
#include "client/session_core.h"
#include "proto/steady_time.h"

namespace holdfast::client {

class FakeConnection final : public Connection {
 public:
  // What outlives the connection, so that a test can look after a session
  // took it over.
  struct Peer {
    std::mutex mutex;  // absl's is not built for the thread sanitizer
    std::condition_variable changed;
    std::vector<wire::Command> sent ABSL_GUARDED_BY(mutex);
    std::deque<wire::Event> events ABSL_GUARDED_BY(mutex);
    absl::Status failure ABSL_GUARDED_BY(mutex);
    bool woken ABSL_GUARDED_BY(mutex) = false;
    bool answer_reads ABSL_GUARDED_BY(mutex) = true;
    // What a read of the profile brings, if the daemon knows such reads.
    std::function<wire::ProfileChunk()> profile ABSL_GUARDED_BY(mutex);
    bool refuse ABSL_GUARDED_BY(mutex) = false;  // as too large
    int goodbyes ABSL_GUARDED_BY(mutex) = 0;

    std::vector<wire::Command> TakeSent() {
      std::lock_guard<std::mutex> lock(mutex);
      return std::move(sent);
    }
    void Fail(absl::Status status) {
      std::lock_guard<std::mutex> lock(mutex);
      failure = std::move(status);
      changed.notify_all();
    }
    void Deliver(wire::Event event) {
      std::lock_guard<std::mutex> lock(mutex);
      events.push_back(std::move(event));
      changed.notify_all();
    }
  };

  FakeConnection(std::shared_ptr<Peer> peer, wire::HelloReply hello)
      : peer_(std::move(peer)), hello_(std::move(hello)) {}

  const char* transport() const override { return "fake"; }
  const wire::HelloReply& hello() const override { return hello_; }

  absl::Status Send(EncodedCommand encoded) override {
    uint8_t* begin = PrependSequence(encoded.data, ++sequence_);
    wire::Batch batch;
    if (!batch.ParseFromArray(begin, encoded.data + encoded.size - begin)) {
      return absl::InternalError("a batch that does not parse");
    }
    std::lock_guard<std::mutex> lock(peer_->mutex);
    if (!peer_->failure.ok()) return peer_->failure;
    if (peer_->refuse) return absl::OutOfRangeError("too large");
    for (wire::Command& command : *batch.mutable_commands()) {
      if (command.has_read() && peer_->answer_reads) {
        wire::Event event;
        event.mutable_read()->set_id(command.read().id());
        if (command.read().profile() && peer_->profile) {
          peer_->profile().SerializeToString(
              event.mutable_read()->mutable_data());
        }
        peer_->events.push_back(std::move(event));
      }
      peer_->sent.push_back(std::move(command));
    }
    return absl::OkStatus();
  }
  absl::StatusOr<bool> NextEvent(SteadyTime deadline,
                                 wire::Event* event) override {
    std::unique_lock<std::mutex> lock(peer_->mutex);
    peer_->changed.wait_until(lock, deadline.ToChrono(), [this] {
      return !peer_->events.empty() || !peer_->failure.ok();
    });
    if (!peer_->events.empty()) {
      *event = std::move(peer_->events.front());
      peer_->events.pop_front();
      return true;
    }
    if (!peer_->failure.ok()) return peer_->failure;
    return false;
  }
  absl::Status Watch(absl::Duration timeout) override {
    std::unique_lock<std::mutex> lock(peer_->mutex);
    const auto ready = [this] { return peer_->woken || !peer_->failure.ok(); };
    if (timeout == absl::InfiniteDuration()) {
      peer_->changed.wait(lock, ready);
    } else {
      peer_->changed.wait_for(lock, absl::ToChronoNanoseconds(timeout), ready);
    }
    peer_->woken = false;
    return peer_->failure;
  }
  void Wake() override {
    std::lock_guard<std::mutex> lock(peer_->mutex);
    peer_->woken = true;
    peer_->changed.notify_all();
  }
  uint64_t inline_limit() const override { return 1024; }
  absl::Status Upload(const void*, uint64_t, BlockMarks*,
                      wire::Put* put) override {
    put->set_upload(++uploads_);
    return absl::OkStatus();
  }
  absl::Status Download(uint64_t, uint64_t bytes, std::string* data) override {
    data->assign(bytes, 'd');
    return absl::OkStatus();
  }
  void Discard(uint64_t) override {}
  absl::StatusOr<MappedBlock> Allocate(uint64_t) override {
    return absl::UnimplementedError("[memory] a fake shares no memory.");
  }
  absl::StatusOr<MappedBytes> Locate(const wire::Place&) override {
    return absl::UnimplementedError("[memory] a fake shares no memory.");
  }
  absl::StatusOr<wire::StatsReply> Stats(uint64_t) override {
    return wire::StatsReply();
  }
  absl::Status Goodbye(Parting) override {
    std::lock_guard<std::mutex> lock(peer_->mutex);
    ++peer_->goodbyes;
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Peer> peer_;
  const wire::HelloReply hello_;
  uint64_t sequence_ = 0;
  uint64_t uploads_ = 0;
};

// A session whose daemon is `peer`.
inline std::shared_ptr<Session> MakeFakeSession(
    std::shared_ptr<FakeConnection::Peer> peer, wire::HelloReply hello) {
  if (hello.ops().empty()) hello.set_op_fingerprint(OpTableFingerprint());
  auto session = SessionCore::Create(
      std::make_unique<FakeConnection>(std::move(peer), std::move(hello)),
      "fake:", nullptr, 1);
  return session.ok() ? *session : nullptr;
}

inline Tensor MakeTensor(const std::shared_ptr<Session>& session,
                         uint64_t handle, absl::Span<const int64_t> shape = {},
                         DType dtype = DType::kFloat32) {
  const TensorSpec spec = ContiguousSpec(dtype, shape);
  return MakeRef<TensorState>(session, handle, spec, MakeRef<StorageState>());
}

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_FAKE_CONNECTION_TEST_H_
