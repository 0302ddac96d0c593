// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/grpc_stream.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/slice.h"
#include "proto/profile_clock.h"
#include "server/exec/worker.h"
#include "server/session/session.h"
#include "server/transport/batch_decoder.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace holdfast {
namespace {

constexpr size_t kKeptSlots = 8;
// How long a closed stream waits for its client to read what was sent.
constexpr std::chrono::seconds kLinger(5);

// gRPC hands a stream from the thread that made it to that of OnCancel under a
// lock of its own, which ThreadSanitizer does not see: the library is not
// instrumented.
void HandToGrpc(void* stream) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(stream);
#endif
  (void)stream;
}
void TakeFromGrpc(void* stream) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(stream);
#endif
  (void)stream;
}

grpc::ByteBuffer Serialize(const v1::Event& event, size_t size) {
  grpc::Slice slice(size);
  event.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

struct GrpcStream::Slot {
  BatchDecoder decoder;
  const v1::Batch* batch = nullptr;
  size_t bytes = 0;
  int64_t received_ns = 0;  // ProfileNow
};

// ---- life

std::shared_ptr<GrpcStream> GrpcStream::Create(
    grpc::CallbackServerContext* context, Worker* worker,
    std::shared_ptr<ConnectionLife> life) {
  std::shared_ptr<GrpcStream> stream(
      new GrpcStream(context, worker, std::move(life)));
  stream->self_ = stream;
  HandToGrpc(stream.get());
  return stream;
}

GrpcStream::GrpcStream(grpc::CallbackServerContext* context, Worker* worker,
                       std::shared_ptr<ConnectionLife> life)
    : context_(context), worker_(worker), life_(std::move(life)) {}

GrpcStream::~GrpcStream() = default;

void GrpcStream::Start() {
  Todo todo;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    may_read_ = true;
    PlanRead(&todo);
  }
  Act(todo);
}

void GrpcStream::OnDone() {
  std::shared_ptr<GrpcStream> self;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
    self = std::move(self_);
  }
  // The last one here destroys this.
}

// ---- decisions, with the lock held

void GrpcStream::PlanRead(Todo* todo) {
  if (!may_read_ || reading_ || closing_ || batches_.size() >= kMaxBatches ||
      batch_bytes_ >= kMaxBatchBytes) {
    return;
  }
  reading_ = todo->read = true;
  ++starting_reads_;
}

void GrpcStream::PlanWrite(Todo* todo) {
  if (writing_ || finished_ || events_.empty()) return;
  writing_ = todo->write = true;
  outgoing_ = std::move(events_.front().message);
  outgoing_bytes_ = events_.front().bytes;
  events_.pop_front();
}

void GrpcStream::PlanFinish(Todo* todo) {
  // No operation may begin once Finish has: it waits for those that are about
  // to, and is the last.
  if (!closing_ || finished_ || writing_ || starting_reads_ > 0) return;
  if (!events_.empty()) return;
  finished_ = true;
  todo->finish = std::move(final_status_);
}

void GrpcStream::PlanWake(Todo* todo) {
  todo->wake = armed_;
  armed_ = false;
}

void GrpcStream::EndNow(Todo* todo) {
  may_read_ = false;
  if (!closing_) final_status_ = grpc::Status::CANCELLED;
  closing_ = true;
  refused_.store(false, std::memory_order_release);
  event_bytes_ = writing_ ? outgoing_bytes_ : 0;
  events_.clear();
  todo->report = true;
  PlanFinish(todo);
}

void GrpcStream::Act(const Todo& todo) {
  if (todo.wake) worker_->Wake();
  if (todo.report) ReportHangUp(life_);
  if (todo.write) StartWrite(&outgoing_);
  if (todo.read) {
    StartRead(&incoming_);
    Todo then;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      --starting_reads_;
      PlanFinish(&then);
    }
    if (then.finish.has_value()) Finish(*std::move(then.finish));
  }
  // From here on this may be gone: the status is the caller's.
  if (todo.finish.has_value()) Finish(*todo.finish);
}

// ---- reactions

absl::StatusOr<std::unique_ptr<GrpcStream::Slot>> GrpcStream::ParseIncoming() {
  std::unique_ptr<Slot> slot;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      slot = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (slot == nullptr) {
    slot = std::make_unique<Slot>();
    if (const std::shared_ptr<Session> session = life_->session.lock()) {
      slot->decoder.set_account(session->options().account);
    }
  }
  slot->bytes = incoming_.Length();
  // A small message is in one piece already.
  grpc::Slice whole;
  const bool ok = incoming_.TrySingleSlice(&whole).ok() ||
                  incoming_.DumpToSingleSlice(&whole).ok();
  incoming_.Clear();
  slot->batch =
      !ok ? nullptr
          : slot->decoder.Decode(reinterpret_cast<const char*>(whole.begin()),
                                 whole.size());
  if (slot->batch == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[grpc] a message of the stream must be a Batch with at "
        "most ",
        BatchDecoder::kMaxCommands, " commands and ", BatchDecoder::kMaxParts,
        " parts. Got ", slot->bytes, " bytes that are none."));
  }
  return slot;
}

void GrpcStream::OnReadDone(bool ok) {
  Todo todo;
  if (!ok) {
    // The client has said all, or is gone.
    std::unique_lock<std::mutex> lock(mutex_);
    reading_ = may_read_ = false;
    lock.unlock();
    todo.report = true;
    return Act(todo);
  }
  const int64_t received = ProfileNow();
  absl::StatusOr<std::unique_ptr<Slot>> slot = ParseIncoming();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    reading_ = false;
    if (slot.ok()) {
      batch_bytes_ += (*slot)->bytes;
      (*slot)->received_ns = received;
      batches_.push_back(*std::move(slot));
      PlanRead(&todo);
    } else {
      broken_ = slot.status();
      may_read_ = false;
    }
    has_batch_.store(true, std::memory_order_release);
    PlanWake(&todo);
  }
  Act(todo);
}

void GrpcStream::OnWriteDone(bool ok) {
  Todo todo;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    writing_ = false;
    event_bytes_ -= outgoing_bytes_;
    outgoing_bytes_ = 0;
    outgoing_.Clear();
    if (!ok) {
      EndNow(&todo);
    } else {
      PlanWrite(&todo);
      PlanFinish(&todo);
      if (!CanSend() && events_.size() <= kMaxEvents / 2 &&
          event_bytes_ <= kMaxEventBytes / 2) {
        refused_.store(false, std::memory_order_release);
        todo.wake = true;
      }
    }
  }
  Act(todo);
}

void GrpcStream::OnCancel() {
  TakeFromGrpc(this);
  Todo todo;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    EndNow(&todo);
  }
  Act(todo);
}

// ---- worker thread

absl::StatusOr<const v1::Batch*> GrpcStream::NextBatch() {
  std::unique_ptr<Slot> last = std::move(current_);
  if (last != nullptr) last->decoder.Release();
  Todo todo;
  absl::Status broken;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (last != nullptr) {
      // Until now it counted as waiting, since its memory was in use.
      batch_bytes_ -= last->bytes;
      if (free_.size() < kKeptSlots) free_.push_back(std::move(last));
    }
    if (batches_.empty()) {
      broken = broken_;
    } else {
      current_ = std::move(batches_.front());
      batches_.pop_front();
    }
    if (batches_.empty()) {
      has_batch_.store(!broken_.ok(), std::memory_order_release);
    }
    PlanRead(&todo);
  }
  Act(todo);
  if (!broken.ok()) return broken;
  return current_ == nullptr ? nullptr : current_->batch;
}

int64_t GrpcStream::batch_received() const {
  return current_ == nullptr ? 0 : current_->received_ns;
}

size_t GrpcStream::batch_bytes() const {
  return current_ == nullptr ? 0 : current_->bytes;
}

bool GrpcStream::HasBatch() const {
  return has_batch_.load(std::memory_order_acquire);
}

size_t GrpcStream::queued_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return batch_bytes_;
}

bool GrpcStream::Arm() {
  std::lock_guard<std::mutex> lock(mutex_);
  armed_ = !HasBatch();
  return armed_;
}

void GrpcStream::Disarm() {
  std::lock_guard<std::mutex> lock(mutex_);
  armed_ = false;
}

bool GrpcStream::Send(const v1::Event& event) {
  const size_t size = event.ByteSizeLong();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closing_) return true;  // nobody listens; a resumed client asks again
    // One event of any size always fits, so that none waits for ever.
    if (events_.size() >= kMaxEvents ||
        (event_bytes_ > 0 && event_bytes_ + size > kMaxEventBytes)) {
      refused_.store(true, std::memory_order_release);
      return false;
    }
    refused_.store(false, std::memory_order_release);
  }
  grpc::ByteBuffer message = Serialize(event, size);
  Todo todo;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closing_) return true;
    event_bytes_ += size;
    events_.push_back({std::move(message), size});
    PlanWrite(&todo);
  }
  Act(todo);
  return true;
}

void GrpcStream::Close(const absl::Status& reason) {
  Todo todo;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closing_) return;
    closing_ = true;
    refused_.store(false, std::memory_order_release);
    final_status_ = ToGrpcStatus(reason);
    PlanFinish(&todo);
    if (!todo.finish.has_value()) {
      std::weak_ptr<GrpcStream> weak = self_;
      linger_ = std::make_unique<grpc::Alarm>();
      linger_->Set(std::chrono::system_clock::now() + kLinger,
                   [weak = std::move(weak)](bool) {
                     std::shared_ptr<GrpcStream> stream = weak.lock();
                     if (stream == nullptr) return;
                     std::lock_guard<std::mutex> lock(stream->mutex_);
                     if (!stream->done_) stream->context_->TryCancel();
                   });
    }
  }
  Act(todo);
}

// ---- connection

GrpcConnection::GrpcConnection(std::shared_ptr<GrpcStream> stream,
                               std::shared_ptr<ConnectionLife> life,
                               std::function<bool()> look)
    : stream_(std::move(stream)),
      life_(std::move(life)),
      look_(std::move(look)) {
  life_->connection.store(this, std::memory_order_release);
}

GrpcConnection::~GrpcConnection() {
  life_->connection.store(nullptr, std::memory_order_release);
  stream_->Close(absl::OkStatus());
}

}  // namespace holdfast
