// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/grpc_bulk.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "grpcpp/support/slice.h"
#include "server/memory/memory_ledger.h"
#include "server/session/session.h"
#include "server/transport/grpc_stream.h"
#include "server/transport/reaction_order.h"

namespace holdfast {
namespace {

constexpr uint64_t kChunkBytes = 1 << 20;

absl::Status UnknownSession() {
  return absl::NotFoundError(
      "[session] no session has this token; it ended, or never was.");
}

}  // namespace

// ---- upload

UploadBudget::UploadBudget(const ServerLimits& limits)
    : limit_(limits.memory_limit_bytes == 0
                 ? limits.upload_limit_bytes
                 : std::min(limits.upload_limit_bytes,
                            limits.memory_limit_bytes)) {}

absl::Status UploadBudget::Reserve(uint64_t session, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t& reserved = reserved_[session];
  if (bytes > limit_ - reserved) {
    const uint64_t others = reserved;
    if (reserved == 0) reserved_.erase(session);
    return absl::ResourceExhaustedError(absl::StrCat(
        "[upload] the uploads of a session that are under way must have at "
        "most ",
        limit_, " bytes (--memory_limit). Got ", bytes, " beside ", others,
        "."));
  }
  reserved += bytes;
  return absl::OkStatus();
}

void UploadBudget::Return(uint64_t session, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = reserved_.find(session);
  if (it == reserved_.end()) return;
  it->second -= bytes;
  if (it->second == 0) reserved_.erase(it);
}

namespace {

class Upload final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  Upload(SessionRegistry* registry, const absl::StatusOr<Peer>& peer,
         UploadBudget* budget, MessageTurns* turns, grpc::ByteBuffer* reply)
      : registry_(registry),
        budget_(budget),
        turns_(peer.ok() ? turns : nullptr),
        reply_(reply) {
    if (!peer.ok()) {
      PrecedeReactions(this);
      Finish(ToGrpcStatus(peer.status()));
      return;
    }
    user_ = peer->user;
    turns_->Begin(user_.name, [this] {
      PrecedeReactions(this);
      StartRead(&message_);
    });
  }

  void OnReadDone(bool ok) override {
    FollowReactions(this);
    const absl::Status status = ok ? TakeChunk() : Complete();
    message_.Clear();
    PrecedeReactions(this);
    if (ok && status.ok()) {
      StartRead(&message_);
    } else {
      Finish(ToGrpcStatus(status));
    }
  }
  // Reads fail then, which ends it.
  void OnCancel() override {}
  void OnDone() override {
    FollowReactions(this);
    if (reserved_ > 0) budget_->Return(session_->options().id, reserved_);
    if (turns_ != nullptr) turns_->End(user_.name);
    delete this;
  }

 private:
  absl::Status TakeChunk() {
    grpc::ProtoBufferReader reader(&message_);
    if (!reader.status().ok()) return NoChunk();
    if (session_ != nullptr) return TakeLaterChunk(&reader);
    v1::UploadChunk chunk;
    if (!chunk.ParseFromZeroCopyStream(&reader)) return NoChunk();
    absl::Status status = Begin(chunk);
    if (!status.ok()) return status;
    const std::string& data = chunk.data();
    status = Claim(data.size());
    if (status.ok()) Append(data.data(), data.size());
    return status;
  }

  // Only data: it is copied once, to where it stays.
  absl::Status TakeLaterChunk(grpc::ProtoBufferReader* reader) {
    using google::protobuf::internal::WireFormatLite;
    constexpr uint32_t kDataTag = GOOGLE_PROTOBUF_WIRE_FORMAT_MAKE_TAG(
        v1::UploadChunk::kDataFieldNumber,
        WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
    google::protobuf::io::CodedInputStream input(reader);
    while (const uint32_t tag = input.ReadTag()) {
      if (tag != kDataTag) {
        if (!WireFormatLite::SkipField(&input, tag)) return NoChunk();
        continue;
      }
      uint32_t left;
      if (!input.ReadVarint32(&left)) return NoChunk();
      absl::Status status = Claim(left);
      if (!status.ok()) return status;
      while (left > 0) {
        const void* piece;
        int size;
        if (!input.GetDirectBufferPointer(&piece, &size)) return NoChunk();
        size = static_cast<int>(std::min<uint32_t>(left, size));
        Append(piece, size);
        input.Skip(size);
        left -= size;
      }
    }
    return input.ConsumedEntireMessage() ? absl::OkStatus() : NoChunk();
  }

  // Puts bytes that have come on their user's account. A client that promises
  // much and sends little takes little.
  absl::Status Claim(size_t size) {
    if (size > total_ - bytes_->size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[upload] the chunks must have total_bytes together. Got more than ",
          total_, " bytes."));
    }
    const absl::Status status = charge_.Add(size);
    return status.ok() ? status : NoRoom(status);
  }

  absl::Status NoRoom(const absl::Status& reason) const {
    return absl::ResourceExhaustedError(absl::StrCat(
        "[upload] no room for ", total_, " bytes: ", reason.message(), "."));
  }

  void Append(const void* data, size_t size) {
    const auto* begin = static_cast<const uint8_t*>(data);
    bytes_->insert(bytes_->end(), begin, begin + size);
  }

  static absl::Status NoChunk() {
    return absl::InvalidArgumentError(
        "[upload] a message must be an UploadChunk.");
  }

  absl::Status Begin(const v1::UploadChunk& chunk) {
    session_ = registry_->FindByToken(chunk.session_token(), user_);
    if (session_ == nullptr) return UnknownSession();
    id_ = chunk.id();
    total_ = chunk.total_bytes();
    absl::Status status = budget_->Reserve(session_->options().id, total_);
    if (!status.ok()) return status;
    reserved_ = total_;
    charge_ = MemoryCharge(session_->options().account);
    status = charge_.CheckRoom(total_);
    if (!status.ok()) return NoRoom(status);
    // Untouched pages cost nothing.
    try {
      bytes_ = NewSharedBytes();
      bytes_->reserve(total_);
    } catch (const std::exception&) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "[upload] the server has no memory for ", total_, " bytes."));
    }
    return absl::OkStatus();
  }

  absl::Status Complete() {
    if (session_ == nullptr || bytes_->size() != total_) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[upload] the chunks must have total_bytes together. Got ",
          bytes_ == nullptr ? 0 : bytes_->size(), " of ", total_, " bytes."));
    }
    v1::UploadReply reply;
    reply.set_bytes(total_);
    const grpc::Slice slice(reply.SerializeAsString());
    *reply_ = grpc::ByteBuffer(&slice, 1);
    return session_->StoreUpload(id_, std::move(bytes_), std::move(charge_));
  }

  SessionRegistry* const registry_;
  UploadBudget* const budget_;
  MessageTurns* const turns_;  // null: it has none
  grpc::ByteBuffer* const reply_;
  User user_;
  grpc::ByteBuffer message_;
  std::shared_ptr<Session> session_;
  SharedBytes bytes_;
  MemoryCharge charge_;
  uint64_t id_ = 0;
  uint64_t total_ = 0;
  uint64_t reserved_ = 0;
};

}  // namespace

grpc::ServerReadReactor<grpc::ByteBuffer>* NewUpload(
    SessionRegistry* registry, const absl::StatusOr<Peer>& peer,
    UploadBudget* budget, MessageTurns* turns, grpc::ByteBuffer* reply) {
  return new Upload(registry, peer, budget, turns, reply);
}

// ---- download

namespace {

// A DownloadChunk whose data is not copied: the message's header, then a slice
// of `bytes`, which it keeps alive.
grpc::ByteBuffer ChunkOf(const SharedBytes& bytes, uint64_t begin,
                         uint64_t size) {
  using google::protobuf::internal::WireFormatLite;
  using google::protobuf::io::CodedOutputStream;
  uint8_t header[16];
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(
      WireFormatLite::MakeTag(v1::DownloadChunk::kDataFieldNumber,
                              WireFormatLite::WIRETYPE_LENGTH_DELIMITED),
      header);
  end = CodedOutputStream::WriteVarint64ToArray(size, end);
  const grpc::Slice slices[2] = {
      grpc::Slice(header, end - header),
      grpc::Slice(
          bytes->data() + begin, size,
          [](void* owner) { delete static_cast<SharedBytes*>(owner); },
          new SharedBytes(bytes))};
  return grpc::ByteBuffer(slices, 2);
}

class Download final : public StreamReactor {
 public:
  Download(SessionRegistry* registry, const absl::StatusOr<Peer>& peer,
           MessageTurns* turns)
      : registry_(registry), turns_(turns) {
    if (!peer.ok()) {
      PrecedeReactions(this);
      Finish(ToGrpcStatus(peer.status()));
      return;
    }
    user_ = peer->user;
    turns_->Begin(user_.name, [this] {
      PrecedeReactions(this);
      StartRead(&request_);
    });
  }

  void OnReadDone(bool ok) override {
    FollowReactions(this);
    turns_->End(user_.name);
    const absl::Status status = ok ? Begin() : NoRequest();
    if (status.ok()) {
      WriteNext();
    } else {
      PrecedeReactions(this);
      Finish(ToGrpcStatus(status));
    }
  }

  void OnWriteDone(bool ok) override {
    FollowReactions(this);
    if (ok) {
      WriteNext();
    } else {
      PrecedeReactions(this);
      Finish(grpc::Status::CANCELLED);
    }
  }
  void OnCancel() override { cancelled_.store(true); }
  void OnDone() override {
    FollowReactions(this);
    // A cut transfer can be repeated. What gRPC has taken may still be lost.
    if (complete_ && !cancelled_.load() && !session_->keeps_downloads()) {
      session_->DropDownload(id_);
    }
    delete this;
  }

 private:
  static absl::Status NoRequest() {
    return absl::InvalidArgumentError(
        "[download] the request must be a DownloadRequest.");
  }

  absl::Status Begin() {
    grpc::ProtoBufferReader reader(&request_);
    v1::DownloadRequest request;
    if (!reader.status().ok() || !request.ParseFromZeroCopyStream(&reader)) {
      return NoRequest();
    }
    session_ = registry_->FindByToken(request.session_token(), user_);
    if (session_ == nullptr) return UnknownSession();
    id_ = request.id();
    absl::StatusOr<SharedBytes> bytes = session_->FindDownload(id_);
    if (!bytes.ok()) return bytes.status();
    bytes_ = *std::move(bytes);
    if (request.offset() > bytes_->size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("[download] an offset must be within the ",
                       bytes_->size(), " bytes. Got ", request.offset(), "."));
    }
    sent_ = request.offset();
    return absl::OkStatus();
  }

  void WriteNext() {
    const uint64_t size = std::min(kChunkBytes, bytes_->size() - sent_);
    if (size == 0) {
      complete_ = true;
      PrecedeReactions(this);
      Finish(grpc::Status::OK);
      return;
    }
    chunk_ = ChunkOf(bytes_, sent_, size);
    sent_ += size;
    PrecedeReactions(this);
    StartWrite(&chunk_);
  }

  SessionRegistry* const registry_;
  MessageTurns* const turns_;
  User user_;
  grpc::ByteBuffer request_;
  std::shared_ptr<Session> session_;
  SharedBytes bytes_;
  grpc::ByteBuffer chunk_;
  uint64_t id_ = 0;
  uint64_t sent_ = 0;
  bool complete_ = false;
  std::atomic<bool> cancelled_{false};
};

}  // namespace

StreamReactor* NewDownload(SessionRegistry* registry,
                           const absl::StatusOr<Peer>& peer,
                           MessageTurns* turns) {
  return new Download(registry, peer, turns);
}

}  // namespace holdfast
