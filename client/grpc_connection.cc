// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// GrpcConnection: the stream, its acknowledgements and its resumption. Bulk
// data and control requests are in grpc_bulk.cc.
#include "client/grpc_connection.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/grpc_calls.h"
#include "client/grpc_stream.h"
#include "client/interrupt.h"
#include "google/protobuf/io/coded_stream.h"
#include "proto/steady_time.h"

namespace holdfast::client {
namespace {

// A batch is closed at this size, so that the server starts on it early.
constexpr size_t kBatchBytes = 64 << 10;
// What may be on its way unacknowledged before Send waits.
constexpr uint64_t kMaxSealedBytes = 16 << 20;
constexpr size_t kMaxSealedBatches = 64 << 10;
// One that would fill all of that by itself.
constexpr size_t kMaxCommandBytes = kMaxSealedBytes;
// Events received before the server is told without a command to carry it.
constexpr uint64_t kTellEvents = 32;

// How often a wait for room looks up for Ctrl-C.
constexpr std::chrono::milliseconds kInterruptLook(50);
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(10);
constexpr absl::Duration kLastBackoff = absl::Milliseconds(500);
constexpr int kFirstAttempts = 5;
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
// When gRPC would try again by itself: after we have, on a fresh channel. Where
// both come together, gRPC 1.51 notices only every five seconds what becomes of
// later connections. A dropped channel lives for as long, and a fork waits.
constexpr int kChannelBackoffMs = 2000;
constexpr absl::Duration kHelloTimeout = absl::Seconds(5);
// A connection that is not made by then is given up.
constexpr absl::Duration kConnectTimeout = absl::Seconds(5);
// How long a cut goes on before the user hears of it.
constexpr absl::Duration kSilence = absl::Milliseconds(1500);
// What closing a session may wait for one.
constexpr absl::Duration kClosePatience = absl::Milliseconds(200);

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

void* Tag(StreamStep step) {
  return reinterpret_cast<void*>(static_cast<intptr_t>(step));
}

}  // namespace

void GrpcConnection::Authorize(grpc::ClientContext* context) const {
  AddToken(credentials_.token, context);
}

absl::StatusOr<std::unique_ptr<Connection>> GrpcConnection::Open(
    const std::string& address, const wire::HelloRequest& hello,
    double timeout_seconds, LoadedCredentials credentials,
    std::optional<double> reconnect_seconds) {
  absl::Status usable = GrpcUsable();
  if (!usable.ok()) return usable;
  const GrpcUse use;
  std::unique_ptr<GrpcConnection> connection(
      new GrpcConnection(address, hello, timeout_seconds,
                         std::move(credentials), reconnect_seconds));
  absl::Status status = connection->SayFirstHello();
  if (!status.ok()) {
    return ExplainFailure(address, timeout_seconds, connection->credentials_,
                          status);
  }
  {
    std::lock_guard<std::mutex> lock(connection->mutex_);
    connection->NotePlace(address, hello);
    connection->next_sequence_ = connection->hello_.applied_batch() + 1;
    connection->StartStream();
  }
  connection->StartThread([raw = connection.get()] { raw->Loop(); });
  AddForkPausable(connection.get());
  return std::unique_ptr<Connection>(std::move(connection));
}

GrpcConnection::GrpcConnection(std::string address, wire::HelloRequest request,
                               double timeout_seconds,
                               LoadedCredentials credentials,
                               std::optional<double> reconnect_seconds)
    : address_(std::move(address)),
      request_(std::move(request)),
      timeout_seconds_(timeout_seconds),
      reconnect_seconds_(reconnect_seconds),
      credentials_(std::move(credentials)),
      queue_(std::make_unique<grpc::CompletionQueue>()),
      collected_(kBatchHeadroom, '\0') {
  std::lock_guard<std::mutex> lock(mutex_);
  MakeChannel();
}

GrpcConnection::~GrpcConnection() {
  const GrpcUse use;
  RemoveForkPausable(this);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    if (stream_) stream_->context.TryCancel();
    if (hello_context_ != nullptr) hello_context_->TryCancel();
    changed_.notify_all();
    watch_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  std::lock_guard<std::mutex> lock(mutex_);
  DropGrpc(kClosePatience);
}

void GrpcConnection::StartThread(std::function<void()> body) {
  // The thread takes no signals: those are the program's.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  thread_ = std::thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void GrpcConnection::DropGrpc(absl::Duration patience) {
  stream_.reset();
  queue_->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
  }
  queue_.reset();
  stub_.reset();
  // gRPC does not let go of a connection that it is making, which nobody polls
  // without its channel.
  const auto deadline = absl::ToChronoTime(absl::Now() + patience);
  while (channel_->GetState(false) == GRPC_CHANNEL_CONNECTING &&
         channel_->WaitForStateChange(GRPC_CHANNEL_CONNECTING, deadline)) {
  }
  channel_.reset();
}

// ---- around a fork

void GrpcConnection::PauseForFork() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    paused_ = true;
    if (stream_) stream_->context.TryCancel();
    if (hello_context_ != nullptr) hello_context_->TryCancel();
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  std::lock_guard<std::mutex> lock(mutex_);
  DropGrpc(kConnectTimeout);
}

void GrpcConnection::ResumeAfterFork() {
  std::lock_guard<std::mutex> lock(mutex_);
  paused_ = false;
  queue_ = std::make_unique<grpc::CompletionQueue>();
  MakeChannel();
  if (ended_ || stopping_) return;
  StartThread([this] {
    if (Rejoin(grpc::Status(grpc::StatusCode::UNAVAILABLE, "a fork"))) Loop();
  });
}

void GrpcConnection::MakeChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(64 << 20);
  arguments.SetMaxSendMessageSize(64 << 20);
  // A peer that has vanished without a word is noticed within ten seconds.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 5000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Resumption is ours: a retry below would not know of sequence numbers.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kChannelBackoffMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kChannelBackoffMs);
  // What gRPC calls so is how long it tries to make a connection.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   absl::ToInt64Milliseconds(kConnectTimeout));
  channel_ = grpc::CreateCustomChannel(
      GrpcTarget(address_), ToChannelCredentials(credentials_), arguments);
  stub_ = wire::Holdfast::NewStub(channel_);
}

std::shared_ptr<grpc::Channel> GrpcConnection::channel() {
  std::lock_guard<std::mutex> lock(mutex_);
  return channel_;
}

std::shared_ptr<GrpcConnection::Stub> GrpcConnection::stub() {
  std::lock_guard<std::mutex> lock(mutex_);
  return stub_;
}

absl::Status GrpcConnection::SayHello(absl::Duration timeout,
                                      wire::HelloReply* reply) {
  wire::HelloRequest request = request_;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  Authorize(&context);
  std::shared_ptr<Stub> stub;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!hello_.session_token().empty()) {
      // The same session, not another one of the same name.
      request.set_session_token(hello_.session_token());
      request.clear_session_name();
      request.clear_attach();
      request.set_received_event(Acknowledgeable());
    }
    if (paused_) return absl::CancelledError("[session] paused.");
    stub = stub_;
    hello_context_ = &context;
    if (stopping_) context.TryCancel();
  }
  wire::HelloReply answer;
  const grpc::Status status = stub->Hello(&context, request, &answer);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    hello_context_ = nullptr;
  }
  if (!status.ok()) return FromGrpc(status);
  absl::Status refusal = CheckHello(answer, address_);
  if (refusal.ok()) *reply = std::move(answer);
  return refusal;
}

absl::Status GrpcConnection::SayFirstHello() {
  const SteadyTime deadline = SteadyNow() + absl::Seconds(timeout_seconds_);
  for (int attempt = 1;; ++attempt) {
    const absl::Duration left = deadline - SteadyNow();
    const absl::Status status = SayHello(left, &hello_);
    // A daemon that has just been started, or a moment's cut. Not for named
    // sessions: the first attempt may have opened one.
    if (!absl::IsUnavailable(status) || !request_.session_name().empty()) {
      return status;
    }
    // Where nobody listens the user is not kept waiting; where connections are
    // made and break, the network is bad. Or the other side speaks another
    // protocol, which is found out first.
    if (attempt > kFirstAttempts &&
        (!BrokeAfterwards(status) || left < kFirstPause ||
         (attempt == kFirstAttempts + 1 &&
          !ExplainTls(address_, credentials_).empty()))) {
      return status;
    }
    absl::SleepFor(kFirstPause);
    std::lock_guard<std::mutex> lock(mutex_);
    MakeChannel();
  }
}

// ---- sending

bool GrpcConnection::Congested() const {
  return sealed_bytes_ > kMaxSealedBytes || sealed_.size() > kMaxSealedBatches;
}

absl::Status GrpcConnection::Send(EncodedCommand command) {
  if (command.size > kMaxCommandBytes) {
    return absl::OutOfRangeError(
        absl::StrCat("[session] one command must have at most ",
                     kMaxCommandBytes, " bytes over gRPC. Got ", command.size,
                     "; pass fewer tensors at once."));
  }
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_ && Congested()) {
    changed_.wait_for(lock, kInterruptLook);
    if (command.may_be_interrupted && Congested() &&
        InterruptPending(/*locked=*/true)) {
      return absl::CancelledError("[session] the wait was interrupted.");
    }
  }
  if (ended_) return end_;
  collected_.append(reinterpret_cast<const char*>(command.data), command.size);
  if (collected_.size() >= kBatchBytes) Seal();
  Flush();
  return absl::OkStatus();
}

void GrpcConnection::Seal() {
  using ::google::protobuf::io::CodedOutputStream;
  if (Acknowledgeable() > told_event_) {
    told_event_ = Acknowledgeable();
    uint8_t field[11];
    field[0] = wire::Batch::kAcknowledgedEventFieldNumber << 3;
    const uint8_t* end =
        CodedOutputStream::WriteVarint64ToArray(told_event_, field + 1);
    collected_.append(reinterpret_cast<char*>(field), end - field);
  }
  auto* owned = new std::string(std::move(collected_));
  uint8_t* commands = reinterpret_cast<uint8_t*>(&(*owned)[0]) + kBatchHeadroom;
  uint8_t* begin = PrependSequence(commands, next_sequence_);
  const size_t size =
      reinterpret_cast<uint8_t*>(&(*owned)[0]) + owned->size() - begin;
  sealed_.push_back(
      {next_sequence_++,
       grpc::Slice(
           begin, size,
           [](void* string) { delete static_cast<std::string*>(string); },
           owned)});
  sealed_bytes_ += size;
  collected_.assign(kBatchHeadroom, '\0');
}

void GrpcConnection::Flush() {
  if (!stream_ || !stream_->started || stream_->broken || stream_->writing) {
    return;
  }
  if (written_ == sealed_.size()) {
    const bool tell = Acknowledgeable() - told_event_ >= kTellEvents;
    if (collected_.size() == kBatchHeadroom && !tell) return;
    Seal();
  }
  const grpc::ByteBuffer message(&sealed_[written_].bytes, 1);
  ++written_;
  stream_->writing = true;
  ++stream_->outstanding;
  stream_->call->Write(message, Tag(StreamStep::kWrite));
}

uint64_t GrpcConnection::Acknowledgeable() const {
  return downloads_.empty() ? received_event_ : downloads_.begin()->first - 1;
}

void GrpcConnection::Tell() {
  if (Acknowledgeable() == told_event_) return;
  Seal();
  Flush();
}

void GrpcConnection::DropAcknowledged(uint64_t sequence) {
  while (!sealed_.empty() && sealed_.front().sequence <= sequence) {
    sealed_bytes_ -= sealed_.front().bytes.size();
    sealed_.pop_front();
    if (written_ > 0) --written_;
  }
}

// ---- the stream

void GrpcConnection::StartStream() {
  stream_ = std::make_unique<Stream>(channel_);
  stream_->context.AddMetadata("holdfast-session", hello_.session_token());
  Authorize(&stream_->context);
  stream_->call = stream_->stub.PrepareCall(
      &stream_->context, "/holdfast.v1.Holdfast/Stream", queue_.get());
  ++stream_->outstanding;
  stream_->call->StartCall(Tag(StreamStep::kStart));
}

void GrpcConnection::Loop() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    if (!Handle(tag, ok)) return;
  }
}

bool GrpcConnection::Handle(void* tag, bool ok) {
  const auto step = static_cast<StreamStep>(reinterpret_cast<intptr_t>(tag));
  wire::Event event;
  bool parsed = true;
  if (step == StreamStep::kRead && ok) {
    // Only this thread touches what is read; parse outside the lock.
    parsed = grpc::SerializationTraits<wire::Event>::Deserialize(
                 &stream_->incoming, &event)
                 .ok();
  }
  grpc::Status cause;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Stream& stream = *stream_;
    --stream.outstanding;
    if (step == StreamStep::kWrite) stream.writing = false;
    if (step != StreamStep::kFinish) {
      stream.broken |= !ok || Leaving();
      if (!parsed) {
        End(absl::InternalError(
            absl::StrCat("[session] the daemon at ", address_,
                         " must send events. Got a message that is none.")));
        stream.broken = true;
        stream.context.TryCancel();
      }
      if (!stream.broken) {
        if (step == StreamStep::kRead) HandleEvent(std::move(event));
        if (step == StreamStep::kStart) stream.started = true;
        if (step != StreamStep::kWrite) {
          ++stream.outstanding;
          stream.call->Read(&stream.incoming, Tag(StreamStep::kRead));
        }
        Flush();
      } else if (stream.outstanding == 0) {
        ++stream.outstanding;
        stream.call->Finish(&stream.status, Tag(StreamStep::kFinish));
      }
      return true;
    }
    cause = stream.status;
    stream_.reset();
    if (Leaving() || ended_) return false;
  }
  return Rejoin(cause);
}

bool GrpcConnection::Rejoin(const grpc::Status& cause) {
  const absl::Status status = Reconnect(cause);
  if (status.ok()) return true;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!paused_) End(status);
  return false;
}

void GrpcConnection::HandleEvent(wire::Event event) {
  if (event.acknowledged_batch() != 0) {
    const bool congested = Congested();
    DropAcknowledged(event.acknowledged_batch());
    if (congested) changed_.notify_all();
  }
  if (event.sequence() != 0) {
    if (event.sequence() <= received_event_) return;  // sent again
    received_event_ = event.sequence();
    if (event.read().download() != 0) {
      downloads_[event.sequence()] = event.read().download();
    }
  }
  if (event.kind_case() == wire::Event::KIND_NOT_SET) return;
  events_.push_back(std::move(event));
  changed_.notify_all();
}

absl::Duration GrpcConnection::ReconnectTimeout() {
  return absl::Seconds(reconnect_seconds_.value_or(place()->grace_seconds()));
}

void GrpcConnection::SayWaiting() {
  if (!lost_.has_value() || lost_->told ||
      SteadyNow() < lost_->since + kSilence) {
    return;
  }
  lost_->told = true;
  const std::string line =
      place()->Waiting(lost_->wall_since, ReconnectTimeout());
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

absl::Status GrpcConnection::Reconnect(const grpc::Status& cause) {
  // A daemon that ends a session says why: a stream that ends well was hung up.
  if (!cause.ok() && !IsCut(cause)) return FromGrpc(cause);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    lost_ = {SteadyNow(), absl::Now(), /*told=*/false};
    watch_.notify_all();
  }
  const absl::Status status = TryAgain(cause.error_message());
  std::lock_guard<std::mutex> lock(mutex_);
  const absl::Status result =
      status.ok() || Leaving() ? status : GiveUp(status);
  lost_.reset();
  return result;
}

absl::Status GrpcConnection::GiveUp(const absl::Status& status) {
  if (absl::IsNotFound(status)) {
    return place()->Lost(std::string(status.message()));
  }
  if (!IsCut(ToGrpc(status))) return status;
  return place()->Unreachable(lost_->wall_since, std::string(status.message()));
}

absl::Status GrpcConnection::TryAgain(std::string reason) {
  absl::Duration backoff = kFirstBackoff;
  const SteadyTime deadline = SteadyNow() + ReconnectTimeout();
  while (true) {
    const absl::Duration left = deadline - SteadyNow();
    if (left <= absl::ZeroDuration()) return absl::UnavailableError(reason);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      MakeChannel();
    }
    wire::HelloReply reply;
    const absl::Status status = SayHello(std::min(left, kHelloTimeout), &reply);
    std::unique_lock<std::mutex> lock(mutex_);
    if (Leaving()) return absl::CancelledError("[session] closed.");
    if (status.ok()) {
      // What it has is done with; the rest goes out again, in order.
      DropAcknowledged(reply.applied_batch());
      written_ = 0;
      StartStream();
      changed_.notify_all();
      return absl::OkStatus();
    }
    if (!IsCut(ToGrpc(status))) return status;
    reason = std::string(status.message());
    changed_.wait_for(lock, absl::ToChronoMilliseconds(backoff),
                      [this] { return Leaving(); });
    backoff = std::min(backoff * 2, kLastBackoff);
  }
}

void GrpcConnection::End(const absl::Status& reason) {
  if (ended_) return;
  ended_ = true;
  end_ = reason;
  // A server that ends a session says why before it hangs up.
  for (const wire::Event& event : events_) {
    if (event.session_error().code() != 0) {
      end_ = ToAbslStatus(event.session_error());
    }
  }
  changed_.notify_all();
  watch_.notify_all();
}

// ---- events

absl::StatusOr<bool> GrpcConnection::NextEvent(SteadyTime deadline,
                                               wire::Event* event) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (events_.empty()) {
    if (ended_) return end_;
    if (deadline == SteadyTime::Past()) return false;
    if (changed_.wait_until(lock, deadline.ToChrono()) ==
            std::cv_status::timeout &&
        events_.empty()) {
      return false;
    }
  }
  *event = std::move(events_.front());
  events_.pop_front();
  return true;
}

absl::Status GrpcConnection::Watch(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  const SteadyTime deadline = SteadyNow() + timeout;
  while (!woken_ && !ended_ && !stopping_) {
    SayWaiting();
    const SteadyTime now = SteadyNow();
    if (now >= deadline) break;
    SteadyTime until = deadline;
    if (lost_.has_value() && !lost_->told) {
      until = std::min(until, lost_->since + kSilence);
    }
    if (until == SteadyTime::Future()) {
      watch_.wait(lock);
    } else {
      watch_.wait_for(lock, absl::ToChronoNanoseconds(until - now));
    }
  }
  woken_ = false;
  return ended_ ? end_ : absl::OkStatus();
}

void GrpcConnection::Wake() {
  std::lock_guard<std::mutex> lock(mutex_);
  woken_ = true;
  watch_.notify_all();
}

}  // namespace holdfast::client
