// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/meta_session.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "client/connection.h"
#include "client/session_core.h"
#include "ops/op_schema.h"
#include "proto/steady_time.h"

namespace holdfast::client {
namespace {

constexpr double kTimeoutSeconds = 10;
// A Put's bytes are dropped, whatever their number.
constexpr uint64_t kInlineLimit = 1 << 10;

wire::HelloReply MetaHello() {
  wire::HelloReply hello;
  hello.set_op_fingerprint(OpTableFingerprint());
  hello.set_device(kMeta);
  hello.set_server("no daemon: the device is meta");
  return hello;
}

absl::Status NoData() {
  return absl::UnimplementedError(
      "[meta] a tensor of device='meta' has sizes and a type, but no data: "
      "Cannot copy out of meta tensor. Make it on a device: "
      "module.to_empty(device=...), holdfast.empty_like(x, device=...).");
}

// Drops commands, and answers those that want an answer.
class MetaConnection final : public Connection {
 public:
  const char* transport() const override { return kMeta; }
  const wire::HelloReply& hello() const override { return hello_; }

  absl::Status Send(EncodedCommand encoded) override {
    uint8_t* const begin = PrependSequence(encoded.data, 1);
    wire::Batch batch;
    if (!batch.ParseFromArray(
            begin, static_cast<int>(encoded.data + encoded.size - begin))) {
      return absl::InternalError("[meta] a command that does not parse.");
    }
    for (const wire::Command& command : batch.commands()) {
      if (command.has_read()) {
        // Of handle 0: everything before it is done.
        Answer(command.read().id(), command.read().handle() == 0);
      } else if (command.has_names()) {
        Answer(command.names().id(), false);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> NextEvent(SteadyTime deadline,
                                 wire::Event* event) override {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!changed_.wait_until(lock, deadline.ToChrono(),
                             [this] { return !events_.empty(); })) {
      return false;
    }
    *event = std::move(events_.front());
    events_.pop_front();
    return true;
  }

  absl::Status Watch(absl::Duration timeout) override {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto woken = [this] { return woken_; };
    if (timeout == absl::InfiniteDuration()) {
      changed_.wait(lock, woken);
    } else {
      changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout), woken);
    }
    woken_ = false;
    return absl::OkStatus();
  }
  void Wake() override {
    std::lock_guard<std::mutex> lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }

  uint64_t inline_limit() const override { return kInlineLimit; }
  absl::Status Upload(const void*, uint64_t, BlockMarks*,
                      wire::Put* put) override {
    put->set_upload(1);
    return absl::OkStatus();
  }
  absl::Status Download(uint64_t, uint64_t, std::string*) override {
    return NoData();
  }
  void Discard(uint64_t) override {}
  absl::StatusOr<MappedBlock> Allocate(uint64_t) override { return NoData(); }
  absl::StatusOr<MappedBytes> Locate(const wire::Place&) override {
    return NoData();
  }
  absl::StatusOr<wire::StatsReply> Stats(uint64_t) override {
    return wire::StatsReply();
  }
  absl::Status Goodbye(Parting) override { return absl::OkStatus(); }

 private:
  void Answer(uint64_t id, bool done) {
    wire::Event event;
    event.mutable_read()->set_id(id);
    if (!done) {
      const absl::Status status = NoData();
      wire::Status* failure = event.mutable_read()->mutable_status();
      failure->set_code(static_cast<int>(status.code()));
      failure->set_message(std::string(status.message()));
    }
    std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }

  const wire::HelloReply hello_ = MetaHello();
  std::mutex mutex_;  // absl's is not built for the thread sanitizer
  std::condition_variable changed_;
  std::deque<wire::Event> events_ ABSL_GUARDED_BY(mutex_);
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<std::shared_ptr<Session>> OpenMetaSession() {
  return SessionCore::Create(std::make_unique<MetaConnection>(), kMeta, nullptr,
                             kTimeoutSeconds);
}

}  // namespace holdfast::client
