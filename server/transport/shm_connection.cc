// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/shm_connection.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "proto/convert.h"
#include "proto/limits.h"
#include "server/exec/worker.h"
#include "server/session/session.h"
#include "server/waits/no_wait.h"

namespace holdfast {
namespace {

// A record's capacity is kept up to here.
constexpr size_t kKeptRecordBytes = 256 << 10;

absl::Status MakeDoorbells(ShmChannel* channel) {
  channel->server_bell = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  int pair[2] = {-1, -1};
  if (!channel->server_bell.ok() ||
      socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) !=
          0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("[local] no doorbell: ", strerror(errno), "."));
  }
  channel->client_bell = UniqueFd(pair[0]);
  channel->client_bell_fd = UniqueFd(pair[1]);
  if (shutdown(pair[0], SHUT_RD) != 0) {
    return absl::InternalError(
        absl::StrCat("[local] shutdown: ", strerror(errno), "."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ShmChannel> ShmChannel::Create() {
  ShmChannel channel;
  int fd = -1;
  absl::StatusOr<RingMemory> ring =
      RingMemory::Create(kSubmissionRingBytes, &fd);
  if (!ring.ok()) return ring.status();
  channel.submission = *std::move(ring);
  channel.submission_fd = UniqueFd(fd);
  ring = RingMemory::Create(kCompletionRingBytes, &fd);
  if (!ring.ok()) return ring.status();
  channel.completion = *std::move(ring);
  channel.completion_fd = UniqueFd(fd);
  absl::Status bells = MakeDoorbells(&channel);
  if (!bells.ok()) return bells;
  return channel;
}

ShmConnection::ShmConnection(ShmChannel channel, Worker* worker,
                             std::shared_ptr<const UniqueFd> control,
                             std::shared_ptr<ConnectionLife> life,
                             bool takes_parts)
    : takes_parts_(takes_parts),
      channel_(std::move(channel)),
      reader_(&channel_.submission),
      writer_(&channel_.completion),
      worker_(worker),
      control_(std::move(control)),
      life_(std::move(life)) {
  if (life_ != nullptr) {
    life_->connection.store(this, std::memory_order_release);
    if (const std::shared_ptr<Session> session = life_->session.lock()) {
      const auto& account = session->options().account;
      decoder_.set_account(account);
      rings_ = MemoryCharge(account);
      rings_.AddAnyway(kSubmissionRingBytes + kCompletionRingBytes);
    }
  }
  if (worker_ != nullptr) worker_->Watch(channel_.server_bell.get());
}

ShmConnection::~ShmConnection() {
  if (life_ != nullptr) {
    life_->connection.store(nullptr, std::memory_order_release);
  }
  if (worker_ != nullptr) worker_->Unwatch(channel_.server_bell.get());
  Close(absl::OkStatus());
  Aside* const aside = NoWait::aside();
  if (aside == nullptr) return;
  // Megabytes of mappings, and descriptors that may be the last of their kind.
  struct Rest {
    MemoryCharge rings;  // for as long as the channel
    ShmChannel channel;
    std::shared_ptr<const UniqueFd> control;
  };
  auto rest = std::make_shared<Rest>(
      Rest{std::move(rings_), std::move(channel_), std::move(control_)});
  aside->Post([rest = std::move(rest)]() mutable { rest.reset(); });
}

std::function<bool()> ShmConnection::hang_up_look() const {
  if (control_ == nullptr) return nullptr;
  // Weak: its last owner waits for what is still to be read (the local server).
  return [weak = std::weak_ptr<const UniqueFd>(control_)] {
    const std::shared_ptr<const UniqueFd> control = weak.lock();
    if (control == nullptr) return true;
    pollfd at = {control->get(), POLLRDHUP, 0};
    return poll(&at, 1, 0) == 1;
  };
}

absl::StatusOr<const v1::Batch*> ShmConnection::NextBatch() {
  absl::StatusOr<bool> read = reader_.TryRead(&record_);
  if (ABSL_PREDICT_FALSE(!read.ok())) return read.status();
  if (!*read) {
    if (ABSL_PREDICT_FALSE(refused_ != 0 && writer_.Broken())) {
      return absl::InvalidArgumentError(
          "[ring] the consumer broke the completion ring's format: its head "
          "is not between what was written and what it read before.");
    }
    return nullptr;
  }
  if (reader_.ProducerWaits()) RingClient();
  const v1::Batch* batch = decoder_.Decode(record_.data(), record_.size());
  if (ABSL_PREDICT_FALSE(batch == nullptr)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[ring] a record must be a Batch message with at most ",
        BatchDecoder::kMaxCommands, " commands and ", BatchDecoder::kMaxParts,
        " parts. Got ", record_.size(), " bytes that are none."));
  }
  // The batch has copies of its strings, so the record may go.
  if (ABSL_PREDICT_FALSE(record_.capacity() > kKeptRecordBytes)) {
    std::string().swap(record_);
  }
  return batch;
}

bool ShmConnection::HasBatch() { return reader_.Ready(); }

bool ShmConnection::Arm() { return reader_.Arm(); }

void ShmConnection::Disarm() { reader_.Disarm(); }

bool ShmConnection::Send(const v1::Event& event) {
  if (closed_) return true;  // nobody listens; a resumed client asks again
  const size_t size = event.ByteSizeLong();
  if (ABSL_PREDICT_TRUE(size <= MaxRecord(channel_.completion.capacity()))) {
    return Write(event, size);
  }
  return takes_parts_ ? WriteParts(event) : WriteRefusal(event);
}

bool ShmConnection::WriteParts(const v1::Event& event) {
  // A part that finds no room is tried again, with those behind it.
  if (whole_.empty()) whole_ = event.SerializeAsString();
  v1::Event record;
  while (whole_sent_ < whole_.size()) {
    const size_t size = std::min(kEventPartBytes, whole_.size() - whole_sent_);
    record.mutable_part()->set_data(whole_.data() + whole_sent_, size);
    record.mutable_part()->set_last(whole_sent_ + size == whole_.size());
    if (!Write(record, record.ByteSizeLong())) return false;
    whole_sent_ += size;
  }
  std::string().swap(whole_);
  whole_sent_ = 0;
  return true;
}

bool ShmConnection::WriteRefusal(const v1::Event& event) {
  v1::Event answer;
  answer.set_sequence(event.sequence());
  answer.set_acknowledged_batch(event.acknowledged_batch());
  answer.mutable_read()->set_id(event.read().id());
  StatusToProto(absl::ResourceExhaustedError(absl::StrCat(
                    "[read] a value that travels in the completion ring "
                    "must have at most ",
                    kShmInlineLimit, " bytes; ask for its place. Got ",
                    event.read().data().size(), " bytes.")),
                answer.mutable_read()->mutable_status());
  return Write(answer, answer.ByteSizeLong());
}

bool ShmConnection::CanSend() {
  // Broken: NextBatch tells it.
  return closed_ || refused_ == 0 || writer_.HasSpace(refused_) ||
         writer_.Broken();
}

bool ShmConnection::Write(const v1::Event& event, size_t size) {
  event_bytes_.resize(size);
  event.SerializeWithCachedSizesToArray(
      reinterpret_cast<uint8_t*>(&event_bytes_[0]));
  const uint32_t bytes = static_cast<uint32_t>(size);
  refused_ = 0;
  if (ABSL_PREDICT_FALSE(!writer_.TryWrite(event_bytes_.data(), bytes))) {
    // The client rings our doorbell when it has taken something; it may have
    // done so in between.
    if (writer_.ArmForSpace(bytes) ||
        !writer_.TryWrite(event_bytes_.data(), bytes)) {
      refused_ = bytes;
      return false;
    }
  }
  if (writer_.ConsumerWaits()) RingClient();
  return true;
}

void ShmConnection::RingClient() {
  // As many bytes as clients take at a time. It fails where rings wait that the
  // client has not heard, so that it will wake anyhow.
  const uint64_t one = 1;
  while (send(channel_.client_bell.get(), &one, sizeof(one),
              MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
         errno == EINTR) {
  }
}

void ShmConnection::Close(const absl::Status&) {
  if (closed_) return;
  closed_ = true;
  // Events stay readable in the ring, and a reply that is still on its way
  // through the socket arrives before the end that the client then sees.
  if (control_ != nullptr) shutdown(control_->get(), SHUT_RD);
  RingClient();
}

}  // namespace holdfast
