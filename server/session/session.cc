// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/session/session.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autograd/grad_rule.h"
#include "ops/check.h"
#include "ops/op_id.h"
#include "proto/convert.h"
#include "proto/steady_time.h"
#include "proto/version.h"

namespace holdfast {
namespace {

// Over gRPC the client keeps batches until they are acknowledged; tell it this
// often even when it reads nothing.
constexpr uint64_t kAcknowledgeEvery = 16;
// And after so many bytes: a client waits with 16 MiB on their way.
constexpr uint64_t kAcknowledgeBytes = 4 << 20;

// Results a client asked for and does not take; past this it is stuck or
// hostile and its session ends.
constexpr size_t kMaxPendingEventBytes = size_t{256} << 20;

// A program that catches the error and tries again fills no log.
constexpr absl::Duration kLimitLineEvery = absl::Minutes(1);

// When to look whether a slice is over: after every command that may be long,
// so that another user waits for one of them and no more. Looking after every
// tiny one would cost as much as the op.
class SlowClock {
 public:
  explicit SlowClock(SteadyTime now) : looked_(now) {}
  // After each command.
  bool IsDue() {
    if (--left_ > 0) return false;
    const SteadyTime now = SteadyNow();
    left_ = now - looked_ > kTiny ? 1 : kCommandsPerLook;
    looked_ = now;
    return true;
  }

 private:
  static constexpr int kCommandsPerLook = 4;
  static constexpr absl::Duration kTiny = absl::Microseconds(20);

  SteadyTime looked_;
  int left_ = 1;
};

spdlog::level::level_enum EndLevel(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnavailable:
      return spdlog::level::info;
    default:
      return spdlog::level::warn;
  }
}

// What the client cannot know of the gradient rules.
void ListSaved(v1::HelloReply* reply) {
  for (int id = 0; id < kNumOps; ++id) {
    const GradRule* rule = FindGradRule(static_cast<OpId>(id));
    if (rule == nullptr) continue;
    if (rule->saved_inputs == 0 && rule->saved_outputs == 0) {
      reply->add_saves_nothing(id);
      continue;
    }
    v1::OpSaves* saves = reply->add_saves();
    saves->set_op(id);
    saves->set_inputs(rule->saved_inputs);
    saves->set_outputs(rule->saved_outputs);
    saves->set_serves_others(rule->serves_others);
  }
}

}  // namespace

Session::Session(Device* device, Options options)
    : options_(std::move(options)),
      life_(options_.grace, SteadyNow()),
      local_(options_.local),
      active_us_(SteadyNow().ToMicros()) {
  if (options_.user_share == nullptr) {
    options_.user_share = std::make_shared<UserShare>();
  }
  Executor::Options exec;
  exec.local = options_.local;
  exec.mappable = options_.mappable;
  exec.memory_limit_bytes = options_.memory_limit_bytes;
  exec.max_handles = options_.max_handles;
  exec.max_graph_nodes = options_.max_graph_nodes;
  exec.user = options_.user;
  exec.account = options_.account;
  exec.inline_limit_bytes = options_.inline_limit_bytes;
  exec.stream = options_.stream;
  exec.priority = options_.priority;
  exec.further_devices = options_.further_devices;
  exec.shared = options_.shared;
  exec.names = options_.names;
  executor_ =
      std::make_unique<Executor>(device, static_cast<ReplySink*>(this), exec);
  name_ = options_.name;
  set_op_seconds(options_.op_seconds);
}

Session::~Session() = default;

// ---- any thread

absl::StatusOr<v1::Block> Session::AllocateBlock(uint64_t bytes) {
  return executor_->AllocateBlock(bytes);
}

absl::StatusOr<MemorySegment> Session::FindSegment(uint64_t id) {
  return executor_->FindSegment(id);
}

absl::Status Session::Cancel(const v1::CancelRequest& request) {
  std::lock_guard<std::mutex> lock(cancel_mutex_);
  // Another client's commands have the same numbers, and its own token.
  if (request.session_token() != token()) {
    return absl::FailedPreconditionError(
        "[session] another client took over the session");
  }
  executor_->Cancel(request.through(), request.where());
  return absl::OkStatus();
}

absl::StatusOr<Value> Session::FindInherited(const v1::Inherited& from) {
  std::shared_ptr<Session> other;
  if (options_.find_session)
    other = options_.find_session(from.session_token());
  if (other == nullptr || other->ended() ||
      other->options().user != options_.user) {
    return absl::FailedPreconditionError(
        "[fork] the parent process must keep its session. It has ended.");
  }
  return other->executor_->Lend(from.handle(), from.op_sequence());
}

v1::SessionStats Session::Stats() const {
  v1::SessionStats stats;
  stats.set_id(options_.id);
  stats.set_trace_id(options_.trace_id);
  stats.set_user(options_.user);
  stats.set_name(name());
  stats.set_client(options_.client);
  stats.set_transport(transport_.load());
  stats.set_connected(connected());
  TellMemory(&stats);
  stats.set_tensors(tensors_.load(std::memory_order_relaxed));
  stats.set_op_sequence(op_sequence_.load(std::memory_order_relaxed));
  stats.set_ops(ops_.load(std::memory_order_relaxed));
  stats.set_queued_bytes(queued_bytes_.load(std::memory_order_relaxed));
  stats.set_refused_allocations(
      refused_allocations_.load(std::memory_order_relaxed));
  stats.set_device_seconds(device_seconds_.load(std::memory_order_relaxed));
  return stats;
}

std::string Session::name() const {
  std::lock_guard<std::mutex> lock(bulk_mutex_);
  return name_;
}

void Session::set_name(std::string name) {
  std::lock_guard<std::mutex> lock(bulk_mutex_);
  name_ = std::move(name);
}

std::string Session::credential() const {
  std::lock_guard<std::mutex> lock(bulk_mutex_);
  return credential_;
}

void Session::set_credential(std::string credential) {
  std::lock_guard<std::mutex> lock(bulk_mutex_);
  credential_ = std::move(credential);
}

SteadyTime Session::last_active() const {
  return SteadyTime::FromMicros(active_us_.load(std::memory_order_relaxed));
}

void Session::Excuse(absl::Duration held_up, SteadyTime now) {
  const SteadyTime active = std::min(last_active() + held_up, now);
  active_us_.store(active.ToMicros(), std::memory_order_relaxed);
}

// ---- worker thread

void Session::AddDeviceSeconds(double seconds) {
  device_seconds_.store(
      device_seconds_.load(std::memory_order_relaxed) + seconds,
      std::memory_order_relaxed);
}

bool Session::HasAnswers() {
  return executor_->ReadArrived() ||
         (HasUnsentEvents() && connection_->CanSend());
}
bool Session::HasCommands() {
  return connection_ != nullptr &&
         (current_ != nullptr || executor_->busy() || connection_->HasBatch());
}
bool Session::HasWork() { return HasAnswers() || HasCommands(); }
bool Session::Runnable(absl::Duration lead) {
  return HasAnswers() || (HasCommands() && !executor_->too_far_ahead(lead));
}
bool Session::AwaitsDevice() const { return executor_->awaits_device(); }
bool Session::Arm() {
  return connection_ == nullptr ||
         (current_ == nullptr && !executor_->busy() && connection_->Arm());
}
void Session::Disarm() {
  if (connection_ != nullptr) connection_->Disarm();
}

void Session::NoteQueue() {
  queued_bytes_.store(connection_ == nullptr ? 0 : connection_->queued_bytes(),
                      std::memory_order_relaxed);
}

void Session::LogLimitHits() {
  const uint64_t hits = executor_->limit_hits();
  if (SteadyNow() < next_limit_line_) return;
  LogSession(spdlog::level::warn, label(), "limit hit",
             {{"refused", hits - logged_limit_hits_},
              {"reason", executor_->last_limit_hit()}});
  logged_limit_hits_ = hits;
  next_limit_line_ = SteadyNow() + kLimitLineEvery;
}

void Session::LogChecksFailed() {
  if (SteadyNow() < next_check_line_) return;
  LogSession(spdlog::level::err, label(), "a check failed",
             {{"times", executor_->checks_failed() - logged_checks_failed_},
              {"user", options_.user},
              {"report", executor_->last_check_failed()}});
  logged_checks_failed_ = executor_->checks_failed();
  next_check_line_ = SteadyNow() + kLimitLineEvery;
}

void Session::RunSome(const Slice& slice) {
  const Executor::Counting counting(executor_.get());
  const SteadyTime start = SteadyNow();
  const SteadyTime deadline = start + slice.max_time;
  int ran = 0;
  absl::Status status;
  try {
    status = RunUntil(slice, start, deadline, &ran);
  } catch (...) {
    // It was no op's: nobody knows what became of the session.
    status = CaughtStatus("session");
    LogSession(spdlog::level::err, label(), "a check failed",
               {{"report", status.message()}});
  }
  executor_->EndSlice();
  if (executor_->limit_hits() != logged_limit_hits_) LogLimitHits();
  if (executor_->checks_failed() != logged_checks_failed_) LogChecksFailed();
  refused_allocations_.store(executor_->limit_hits(),
                             std::memory_order_relaxed);
  if (!status.ok()) Break(status);
  if (ran > 0) active_us_.store(start.ToMicros());
  PublishCounters();
  if (!left_.empty() && (!HasWork() || SteadyNow() >= leave_by_)) {
    FinishLeaving();
  }
}

absl::Status Session::RunUntil(const Slice& slice, SteadyTime start,
                               SteadyTime deadline, int* ran) {
  SlowClock clock(start);
  executor_->BeginSlice(start, slice.attendant);
  executor_->FinishReads();
  FlushEvents();
  absl::Status status;
  // A backward gives way between its nodes.
  const auto over = [&] {
    return (slice.yield != nullptr &&
            slice.yield->load(std::memory_order_relaxed)) ||
           SteadyNow() >= deadline;
  };
  while (*ran < slice.max_commands && connection_ != nullptr &&
         !executor_->too_far_ahead(slice.lead)) {
    if (executor_->busy()) {
      executor_->Continue([&] {
        return clock.IsDue() &&
               (over() || executor_->too_far_ahead(slice.lead));
      });
      if (over()) break;
      ++*ran;
      continue;
    }
    if (current_ == nullptr) {
      status = TakeBatch();
      if (!status.ok()) break;
      if (current_ == nullptr && !connection_->HasBatch()) break;
      if (current_ == nullptr) continue;  // a duplicate was dropped
    }
    if (position_ < current_->commands_size()) {
      status = executor_->Apply(current_->commands(position_++));
      ++*ran;
    }
    if (status.ok() && unacknowledged_bytes_ > kMaxPendingEventBytes) {
      status = absl::ResourceExhaustedError(absl::StrCat(
          "[session] the client asked for results and does not take them: ",
          unacknowledged_bytes_, " bytes wait"));
    }
    if (!status.ok()) break;
    if (position_ >= current_->commands_size()) FinishBatch();
    if (slice.yield != nullptr &&
        slice.yield->load(std::memory_order_relaxed)) {
      break;
    }
    if (clock.IsDue() && SteadyNow() >= deadline) break;
  }
  return status;
}

bool Session::FinishFor(SteadyTime deadline, std::function<void()> done) {
  if (!HasWork() || !life_.leaving()) {
    FinishLeaving();
    return false;
  }
  if (left_.empty()) leave_by_ = deadline;
  left_.push_back(std::move(done));
  return true;
}

void Session::FinishLeaving() {
  const HeapMeter::Elsewhere elsewhere;
  if (life_.leaving()) TakeConnection(nullptr);
  life_.Left(SteadyNow());
  for (const auto& done : std::exchange(left_, {})) done();
}

void Session::Break(const absl::Status& reason) {
  if (name().empty() || executor_->kept() == 0) return End(reason);
  LogSession(spdlog::level::warn, label(), "client sent away",
             {{"reason", reason.message()}});
  life_.Expel(SteadyNow());
  HangUp(reason);
}

void Session::PublishCounters() {
  tensors_.store(executor_->tensors(), std::memory_order_relaxed);
  ops_.store(executor_->ops_run(), std::memory_order_relaxed);
  op_sequence_.store(executor_->op_sequence(), std::memory_order_relaxed);
}

absl::Status Session::TakeBatch() {
  absl::StatusOr<const v1::Batch*> batch = [this] {
    const HeapMeter::Elsewhere elsewhere;  // it is the transport's
    return connection_->NextBatch();
  }();
  if (!batch.ok()) return batch.status();
  if (*batch == nullptr) return absl::OkStatus();
  if ((*batch)->acknowledged_event() != 0) {
    DropAcknowledged((*batch)->acknowledged_event());
  }
  const uint64_t sequence = (*batch)->sequence();
  // Resent after a cut, and applied before it: once is enough.
  if (sequence <= applied_batch_) return absl::OkStatus();
  if (sequence != applied_batch_ + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[protocol] batch ", sequence, " came after batch ", applied_batch_));
  }
  current_ = *batch;
  if (!local()) {
    executor_->set_batch_received(connection_->batch_received());
  }
  position_ = sequence == interrupted_batch_ ? interrupted_position_ : 0;
  return absl::OkStatus();
}

void Session::FinishBatch() {
  applied_batch_ = current_->sequence();
  current_ = nullptr;
  if (local()) return;
  bytes_since_ack_ += connection_->batch_bytes();
  if (++batches_since_ack_ < kAcknowledgeEvery &&
      bytes_since_ack_ < kAcknowledgeBytes) {
    return;
  }
  v1::Event acknowledgement;
  acknowledgement.set_acknowledged_batch(applied_batch_);
  if (HandOver(acknowledgement)) batches_since_ack_ = bytes_since_ack_ = 0;
}

void Session::Reply(v1::ReadResult result) {
  if (result.has_status()) {
    result.mutable_status()->set_trace_id(options_.trace_id);
  }
  if (result.has_device_seconds()) {
    result.set_device_seconds(device_seconds_.load(std::memory_order_relaxed));
  }
  v1::Event event;
  *event.mutable_read() = std::move(result);
  SendEvent(std::move(event));
}

void Session::Call(v1::BackwardCall call) {
  v1::Event event;
  *event.mutable_call() = std::move(call);
  SendEvent(std::move(event));
}

bool Session::HandOver(const v1::Event& event) {
  const HeapMeter::Elsewhere elsewhere;
  return connection_->Send(event);
}

void Session::SendEvent(v1::Event event) {
  // Whoever has read a result finds its op counted.
  PublishCounters();
  event.set_sequence(next_event_++);
  // The batch being applied counts as applied only once it is through: an
  // event inside it acknowledges those before.
  event.set_acknowledged_batch(applied_batch_);
  if (local() && connection_ != nullptr &&
      sent_events_ == unacknowledged_.size() && HandOver(event)) {
    return;  // shared memory loses nothing: no need to keep a copy
  }
  unacknowledged_bytes_ += event.ByteSizeLong();
  unacknowledged_.push_back(std::move(event));
  FlushEvents();
}

void Session::FlushEvents() {
  while (connection_ != nullptr && sent_events_ < unacknowledged_.size()) {
    if (!HandOver(unacknowledged_[sent_events_])) break;
    if (local()) {
      unacknowledged_bytes_ -= unacknowledged_.front().ByteSizeLong();
      unacknowledged_.pop_front();
    } else {
      ++sent_events_;
    }
  }
}

void Session::DropAcknowledged(uint64_t event) {
  while (sent_events_ > 0 && unacknowledged_.front().sequence() <= event) {
    const v1::Event& done = unacknowledged_.front();
    if (keeps_downloads() && done.read().download() != 0) {
      DropDownload(done.read().download());
    }
    unacknowledged_bytes_ -= done.ByteSizeLong();
    unacknowledged_.pop_front();
    --sent_events_;
  }
}

void Session::SetConnection(std::unique_ptr<Connection> connection,
                            const std::string& token) {
  if (!life_.Arrive(token, SteadyNow())) {
    connection->Close(absl::FailedPreconditionError(
        ended() ? "[session] the session has ended"
                : "[session] another client took over the session"));
    return;
  }
  if (std::unique_ptr<Connection> old = TakeConnection(nullptr)) {
    old->Close(absl::AbortedError("another connection took over the session"));
  }
  connection_ = std::move(connection);
  connection_now_.store(connection_.get());
  std::function<bool()> look = connection_->hang_up_look();
  {
    std::lock_guard<std::mutex> lock(bulk_mutex_);
    hang_up_look_ = std::move(look);
  }
  NoteReturn();
  transport_.store(connection_->transport() == "shm" ? "shm" : "grpc");
  batches_since_ack_ = 0;
  active_us_.store(SteadyNow().ToMicros());
  const Executor::Counting counting(executor_.get());
  FlushEvents();
}

std::unique_ptr<Connection> Session::TakeConnection(Connection* expected) {
  if (connection_ == nullptr ||
      (expected != nullptr && connection_.get() != expected)) {
    return nullptr;
  }
  if (current_ != nullptr) {
    interrupted_batch_ = current_->sequence();
    interrupted_position_ = position_;
    current_ = nullptr;
  }
  sent_events_ = 0;  // the next connection gets them again
  connection_now_.store(nullptr);
  {
    std::lock_guard<std::mutex> lock(bulk_mutex_);
    hang_up_look_ = nullptr;
  }
  return std::move(connection_);
}

void Session::FillHello(const v1::HelloRequest& request, bool attach,
                        bool local, v1::HelloReply* reply) {
  const Executor::Counting counting(executor_.get());
  keeps_downloads_.store(
      absl::c_linear_search(request.features(), kFeatureParts));
  executor_->set_keep_order(
      absl::c_linear_search(request.features(), kFeatureOrder));
  if (attach) {
    executor_->Reattach(local);
    {
      std::lock_guard<std::mutex> lock(cancel_mutex_);
      executor_->ForgetCancel();  // what comes now is checked by the new token
    }
    DropBulk();
    local_.store(local, std::memory_order_release);
    unacknowledged_.clear();
    unacknowledged_bytes_ = 0;
    next_event_ = 1;
    applied_batch_ = 0;  // a new client counts from 1
    interrupted_batch_ = 0;
  } else {
    sent_events_ = unacknowledged_.size();
    DropAcknowledged(request.received_event());
  }
  sent_events_ = 0;
  executor_->ListKept(reply);
  reply->set_applied_batch(applied_batch_);
  reply->set_next_handle(executor_->next_handle());
  reply->set_inline_limit(options_.inline_limit_bytes);
  reply->set_grace_seconds(absl::ToDoubleSeconds(life_.grace()));
  reply->set_session_id(options_.id);
  reply->set_trace_id(options_.trace_id);
  reply->add_features(kFeatureShare);
  reply->add_features(kFeaturePublish);
  reply->add_features(kFeaturePack);
  reply->add_features(kFeaturePlace);
  reply->add_features(kFeatureParts);
  reply->add_features(kFeatureOrder);
  reply->add_features(kFeatureCancel);
  ListSaved(reply);
}

KeptTensors Session::TakeKept() {
  KeptTensors kept = executor_->TakeKept();
  kept.session = name();
  kept.user = options_.user;
  kept.client = options_.client;
  return kept;
}

void Session::RestoreKept(KeptTensors kept) {
  const Executor::Counting counting(executor_.get());
  executor_->RestoreKept(std::move(kept));
  life_.Restore();
  tensors_.store(executor_->tensors(), std::memory_order_relaxed);
}

void Session::End(const absl::Status& reason) {
  life_.End();
  if (std::exchange(cleared_, true)) return;
  end_code_.store(reason.code());
  LogSession(
      EndLevel(reason.code()), label(), "ended",
      {{"reason", reason.ok() ? "the client left" : reason.message()},
       {"ops", ops_.load(std::memory_order_relaxed)},
       {"device_seconds", device_seconds_.load(std::memory_order_relaxed)}});
  HangUp(reason);
  const Executor::Counting counting(executor_.get());
  // Who has said goodbye may look at arrays until its socket closes; till then
  // their memory is on the user's account.
  executor_->Clear(/*leave_mapped=*/reason.ok() && local());
  DropBulk();
}

void Session::HangUp(const absl::Status& reason) {
  const HeapMeter::Elsewhere elsewhere;
  if (connection_ != nullptr) {
    v1::Event event;
    event.set_sequence(next_event_++);
    event.set_acknowledged_batch(applied_batch_);
    StatusToProto(reason, event.mutable_session_error());
    if (!reason.ok()) {
      event.mutable_session_error()->set_trace_id(options_.trace_id);
    }
    connection_->Send(event);
    // To a client over gRPC a stream that ends well is one that was cut, and it
    // would ask for the session again.
    connection_->Close(
        reason.ok() ? absl::FailedPreconditionError(
                          "[session] the session is closed. Connect again.")
                    : reason);
    current_ = nullptr;
    connection_now_.store(nullptr);
    connection_.reset();
  }
  FinishLeaving();
}

}  // namespace holdfast
