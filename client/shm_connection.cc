// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/shm_connection.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "proto/steady_time.h"

namespace holdfast::client {
namespace {

// Bytes that may travel in a command; more goes through a block, where the
// server need not copy it again.
constexpr uint64_t kInlineBytes = 32 << 10;
// A hot daemon answers within microseconds, one that has to be woken within
// tens; our own sleep and wake-up would double that.
constexpr std::chrono::microseconds kSpin(200);
// After that we may be spinning on the very processor the daemon waits for:
// offer it between looks.
constexpr std::chrono::microseconds kSpinAlone(5);
// Another thread may take the doorbell's ring that was meant for us.
constexpr absl::Duration kRecheck = absl::Milliseconds(5);

inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

bool SeveralProcessors() {
  static const bool several = std::thread::hardware_concurrency() > 1;
  return several;
}

void Ring(const Fd& bell) {
  const uint64_t one = 1;
  while (write(bell.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void Silence(const Fd& bell) {
  uint64_t value;
  while (read(bell.get(), &value, sizeof(value)) < 0 && errno == EINTR) {
  }
}

// An eventfd that only this process has.
absl::StatusOr<Fd> NewBell() {
  Fd bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (bell.get() < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("[connect] no eventfd: ", strerror(errno), "."));
  }
  return bell;
}

// Sleeps until `bell` or `other` (-1: none) rings, or the peer of `socket` is
// gone. Returns the socket's events, 0 for none.
int Sleep(const Fd& bell, const Fd& other, int socket, absl::Duration timeout) {
  pollfd entries[] = {{bell.get(), POLLIN, 0},
                      {socket, POLLRDHUP, 0},
                      {other.get(), POLLIN, 0}};
  const timespec wait =
      absl::ToTimespec(std::max(timeout, absl::ZeroDuration()));
  const int ready =
      ppoll(entries, 3, timeout == absl::InfiniteDuration() ? nullptr : &wait,
            nullptr);
  if (ready <= 0) return 0;  // an interrupted sleep is a short one
  if (entries[0].revents != 0) Silence(bell);
  if (entries[2].revents != 0) Silence(other);
  return entries[1].revents;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> ShmConnection::Open(
    std::unique_ptr<LocalSocket> socket, const wire::HelloRequest& hello,
    std::string address, double timeout_seconds) {
  wire::LocalRequest request;
  *request.mutable_hello() = hello;
  std::vector<Fd> fds;
  absl::StatusOr<wire::LocalReply> reply =
      socket->Call(request, SteadyNow() + absl::Seconds(timeout_seconds), &fds);
  if (!reply.ok()) return reply.status();
  absl::Status status = CheckHello(reply->hello(), address);
  if (!status.ok()) return status;
  if (fds.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[connect] shared memory needs the daemon to be on this machine, and ",
        address,
        " leads to another one: a forwarded socket (ssh -L) passes no memory. "
        "Forward the daemon's port (ssh -L 50151:localhost:50151 HOST) and "
        "use gRPC: connect(\"localhost:50151\")."));
  }
  if (fds.size() != 4) {
    return absl::InternalError(absl::StrCat(
        "[connect] the daemon must pass the rings and doorbells. Got ",
        fds.size(), " descriptors from ", address, "."));
  }
  absl::StatusOr<RingMemory> submission = RingMemory::Map(fds[0].get());
  if (!submission.ok()) return submission.status();
  absl::StatusOr<RingMemory> completion = RingMemory::Map(fds[1].get());
  if (!completion.ok()) return completion.status();
  absl::StatusOr<Fd> wake = NewBell();
  if (!wake.ok()) return wake.status();
  absl::StatusOr<Fd> inbox_bell = NewBell();
  if (!inbox_bell.ok()) return inbox_bell.status();
  const std::string where = address;
  std::unique_ptr<ShmConnection> connection(
      new ShmConnection(std::move(socket), std::move(address), timeout_seconds,
                        std::move(*reply->mutable_hello()),
                        {std::move(fds[0]), std::move(fds[1]),
                         std::move(fds[2]), std::move(fds[3])},
                        *std::move(submission), *std::move(completion),
                        *std::move(wake), *std::move(inbox_bell)));
  connection->NotePlace(where, hello);
  return std::unique_ptr<Connection>(std::move(connection));
}

ShmConnection::ShmConnection(std::unique_ptr<LocalSocket> socket,
                             std::string address, double timeout_seconds,
                             wire::HelloReply hello, Descriptors descriptors,
                             RingMemory submission, RingMemory completion,
                             Fd wake, Fd inbox_bell)
    : socket_(std::move(socket)),
      address_(std::move(address)),
      timeout_seconds_(timeout_seconds),
      hello_(std::move(hello)),
      descriptors_(std::move(descriptors)),
      wake_(std::move(wake)),
      inbox_bell_(std::move(inbox_bell)),
      submission_(std::move(submission)),
      completion_(std::move(completion)),
      arena_([this](uint64_t id, Fd* fd, uint64_t* bytes) {
        wire::LocalRequest request;
        request.set_map(id);
        std::vector<Fd> fds;
        absl::StatusOr<wire::LocalReply> reply =
            socket_->Call(request, Deadline(), &fds);
        if (!reply.ok()) return reply.status();
        if (fds.size() != 1) {
          return absl::InternalError(
              "[memory] the daemon must pass the segment's descriptor.");
        }
        *fd = std::move(fds[0]);
        *bytes = reply->segment().bytes();
        return absl::OkStatus();
      }),
      writer_(&submission_),
      sequence_(hello_.applied_batch()),
      reader_(&completion_) {}

SteadyTime ShmConnection::Deadline() const {
  return SteadyNow() + absl::Seconds(timeout_seconds_);
}

absl::Status ShmConnection::Gone(const std::string& reason) {
  if (closed_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[session] the session at ", address_, " is closed. Connect again."));
  }
  // A daemon that ends a session says why before it hangs up.
  std::lock_guard<std::mutex> lock(events_mutex_);
  static_cast<void>(DrainEvents());
  for (const wire::Event& event : inbox_) {
    if (event.has_session_error()) return ToAbslStatus(event.session_error());
  }
  return WhatBecameOfIt(reason);
}

absl::Status ShmConnection::WhatBecameOfIt(const std::string& reason) {
  constexpr absl::Duration kPatience = absl::Seconds(2);
  if (socket_->PeerEnded()) return DaemonGone(address_, reason);
  // It runs on, or another one in its place: has it the session?
  absl::StatusOr<std::unique_ptr<LocalSocket>> socket =
      LocalSocket::Connect(socket_->path());
  if (!socket.ok()) return DaemonGone(address_, reason);
  wire::LocalRequest request;
  request.mutable_stats();
  absl::StatusOr<wire::LocalReply> reply =
      (*socket)->Call(request, SteadyNow() + kPatience);
  if (!reply.ok()) return place()->HungUp(reason);
  for (const wire::SessionStats& session : reply->stats().sessions()) {
    if (session.id() == hello_.session_id() &&
        session.trace_id() == hello_.trace_id()) {
      return place()->HungUp(reason);
    }
  }
  return place()->Lost(reason);
}

// ---- commands

absl::Status ShmConnection::Send(EncodedCommand command) {
  uint8_t* begin = PrependSequence(command.data, sequence_ + 1);
  const size_t size = command.data + command.size - begin;
  if (ABSL_PREDICT_FALSE(size > MaxRecord(submission_.capacity()))) {
    return Gone("its ring is too small for a command");  // see kPartBytes
  }
  if (ABSL_PREDICT_FALSE(!writer_.TryWrite(begin, size))) {
    absl::Status status = WriteWaiting(begin, size);
    if (!status.ok()) return status;
  }
  ++sequence_;
  if (ABSL_PREDICT_FALSE(writer_.ConsumerWaits())) {
    Ring(descriptors_.server_bell);
  }
  return absl::OkStatus();
}

absl::Status ShmConnection::WriteWaiting(const uint8_t* record, uint32_t size) {
  while (!writer_.TryWrite(record, size)) {
    if (writer_.Broken()) return Gone("it broke the submission ring");
    if (!writer_.ArmForSpace(size)) continue;
    {
      std::lock_guard<std::mutex> lock(events_mutex_);
      const size_t before = inbox_.size();
      absl::Status status = DrainEvents();
      if (!status.ok()) return status;
      // A thread that sleeps for events may look at the inbox now.
      if (inbox_.size() != before) Ring(inbox_bell_);
    }
    if (Sleep(descriptors_.client_bell, {}, socket_->fd(), kRecheck) != 0) {
      return Gone("it closed the connection");
    }
  }
  return absl::OkStatus();
}

// ---- events

absl::Status ShmConnection::DrainEvents() {
  while (true) {
    absl::StatusOr<bool> read = reader_.TryRead(&record_);
    if (!read.ok()) return read.status();
    if (!*read) return absl::OkStatus();
    if (reader_.ProducerWaits()) Ring(descriptors_.server_bell);
    wire::Event event;
    if (!event.ParseFromString(record_)) {
      return absl::InternalError(
          absl::StrCat("[session] the daemon at ", address_,
                       " must send events. Got a record that is none."));
    }
    if (event.has_part()) {
      parts_ += event.part().data();
      if (!event.part().last()) continue;
      const bool whole = event.ParseFromString(parts_);
      std::string().swap(parts_);
      if (!whole) {
        return absl::InternalError(
            absl::StrCat("[session] the daemon at ", address_,
                         " must send events. Got parts that are none."));
      }
    }
    inbox_.push_back(std::move(event));
  }
}

absl::StatusOr<bool> ShmConnection::NextEvent(SteadyTime deadline,
                                              wire::Event* event) {
  const bool wait = deadline != SteadyTime::Past();
  std::unique_lock<std::mutex> lock(events_mutex_);
  const auto take = [&]() -> absl::StatusOr<bool> {
    if (inbox_.empty() && reader_.Ready()) {
      absl::Status status = DrainEvents();
      if (!status.ok()) return status;
    }
    if (inbox_.empty()) return false;
    *event = std::move(inbox_.front());
    inbox_.pop_front();
    return true;
  };
  absl::StatusOr<bool> taken = take();
  if (!taken.ok() || *taken || !wait) return taken;
  const auto begin = std::chrono::steady_clock::now();
  auto spent = std::chrono::steady_clock::duration::zero();
  do {
    if (!SeveralProcessors() || spent > kSpinAlone) sched_yield();
    for (int i = 0; i < 32 && !reader_.Ready(); ++i) Pause();
    taken = take();
    if (!taken.ok() || *taken) return taken;
    spent = std::chrono::steady_clock::now() - begin;
  } while (spent < kSpin);
  while (true) {
    if (closed_) return Gone("");
    const absl::Duration left = deadline - SteadyNow();
    if (left <= absl::ZeroDuration()) return false;
    int hangup = 0;
    if (reader_.Arm()) {
      lock.unlock();
      hangup =
          Sleep(descriptors_.client_bell, inbox_bell_, socket_->fd(), left);
      lock.lock();
    }
    // What the daemon said before it went comes first.
    taken = take();
    if (!taken.ok() || *taken) return taken;
    if (hangup != 0) {
      lock.unlock();
      return Gone("it closed the connection");
    }
  }
}

absl::Status ShmConnection::Watch(absl::Duration timeout) {
  const int hangup = Sleep(wake_, {}, socket_->fd(), timeout);
  if (closed_ || hangup != 0) return Gone("it closed the connection");
  return absl::OkStatus();
}

void ShmConnection::Wake() { Ring(wake_); }

// ---- bulk data

uint64_t ShmConnection::inline_limit() const {
  return hello_.inline_limit() == 0
             ? kInlineBytes
             : std::min(kInlineBytes, hello_.inline_limit());
}

absl::StatusOr<wire::Block> ShmConnection::AskForBlock(uint64_t bytes) {
  wire::LocalRequest request;
  request.set_allocate(bytes);
  absl::StatusOr<wire::LocalReply> reply = socket_->Call(request, Deadline());
  if (!reply.ok()) return reply.status();
  if (reply->block().place().bytes() < bytes) {
    return absl::InternalError(absl::StrCat(
        "[memory] a block must have the size asked for. Got ",
        reply->block().place().bytes(), " instead of ", bytes, " bytes."));
  }
  return reply->block();
}

absl::StatusOr<MappedBlock> ShmConnection::Allocate(uint64_t bytes) {
  absl::StatusOr<wire::Block> block = AskForBlock(bytes);
  if (!block.ok()) return block.status();
  absl::StatusOr<MappedBytes> memory = arena_.Locate(block->place());
  if (!memory.ok()) return memory.status();
  return MappedBlock{block->id(), *std::move(memory)};
}

absl::Status ShmConnection::Upload(const void* data, uint64_t bytes,
                                   BlockMarks* marks, wire::Put* put) {
  absl::StatusOr<wire::Block> block = AskForBlock(bytes);
  if (!block.ok()) return block.status();
  absl::Status status = arena_.CopyTo(block->place(), data, bytes, marks);
  if (!status.ok()) return status;
  put->set_block(block->id());
  return absl::OkStatus();
}

absl::Status ShmConnection::Download(uint64_t id, uint64_t, std::string*) {
  return absl::InternalError(absl::StrCat(
      "[read] a local session must not be told to download. Got id ", id, "."));
}

absl::StatusOr<MappedBytes> ShmConnection::Locate(const wire::Place& place) {
  return arena_.Locate(place);
}

// ---- control

absl::StatusOr<wire::StatsReply> ShmConnection::Stats(uint64_t memory_of) {
  wire::LocalRequest request;
  request.mutable_stats()->set_memory_of(memory_of);
  absl::StatusOr<wire::LocalReply> reply = socket_->Call(request, Deadline());
  if (!reply.ok()) return reply.status();
  return std::move(*reply->mutable_stats());
}

absl::Status ShmConnection::Goodbye(Parting parting) {
  const bool keep = parting != Parting::kEnd;
  wire::LocalRequest request;
  request.mutable_goodbye()->set_session_token(hello_.session_token());
  request.mutable_goodbye()->set_keep(keep);
  request.mutable_goodbye()->set_within_grace(parting == Parting::kLeave);
  // The daemon answers when all that was sent is done. It does that also when
  // nobody waits any more.
  constexpr absl::Duration kEndOfProgram = absl::Seconds(2);
  const SteadyTime deadline =
      parting == Parting::kLeave ? SteadyNow() + kEndOfProgram : Deadline();
  absl::Status status = socket_->Call(request, deadline).status();
  // A session without a name cannot be left: it goes on.
  closed_ = !(keep && absl::IsInvalidArgument(status));
  return status;
}

absl::Status ShmConnection::Cancel(uint64_t through, const std::string& where) {
  wire::LocalRequest request;
  request.mutable_cancel()->set_session_token(hello_.session_token());
  request.mutable_cancel()->set_through(through);
  request.mutable_cancel()->set_where(where);
  return socket_->Call(request, Deadline()).status();
}

void ShmConnection::LetGo() {
  arena_.Detach();
  shutdown(socket_->fd(), SHUT_RDWR);
}

}  // namespace holdfast::client
