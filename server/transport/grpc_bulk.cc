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
#include "server/session/session.h"
#include "server/transport/grpc_stream.h"

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

class Upload final : public grpc::ServerReadReactor<v1::UploadChunk> {
 public:
  Upload(SessionRegistry* registry, UploadBudget* budget,
         v1::UploadReply* reply)
      : registry_(registry), budget_(budget), reply_(reply) {
    StartRead(&chunk_);
  }

  void OnReadDone(bool ok) override {
    absl::Status status = ok ? TakeChunk() : Complete();
    if (ok && status.ok()) {
      StartRead(&chunk_);
    } else {
      End(status);
    }
  }
  // Reads fail then, which ends it.
  void OnCancel() override {}
  void OnDone() override {
    if (reserved_ > 0) budget_->Return(session_->options().id, reserved_);
    delete this;
  }

 private:
  absl::Status TakeChunk() {
    if (session_ == nullptr) {
      absl::Status status = Begin();
      if (!status.ok()) return status;
    }
    const std::string& data = chunk_.data();
    if (data.size() > total_ - bytes_->size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[upload] the chunks must have total_bytes together. Got more than ",
          total_, " bytes."));
    }
    bytes_->insert(bytes_->end(), data.begin(), data.end());
    return absl::OkStatus();
  }

  absl::Status Begin() {
    session_ = registry_->FindByToken(chunk_.session_token());
    if (session_ == nullptr) return UnknownSession();
    id_ = chunk_.id();
    total_ = chunk_.total_bytes();
    absl::Status status = budget_->Reserve(session_->options().id, total_);
    if (!status.ok()) return status;
    reserved_ = total_;
    // Untouched pages cost nothing, so that a client that promises much and
    // sends little takes little.
    try {
      bytes_ = std::make_shared<std::vector<uint8_t>>();
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
    reply_->set_bytes(total_);
    return session_->StoreUpload(id_, std::move(bytes_));
  }

  void End(const absl::Status& status) {
    bytes_.reset();
    Finish(ToGrpcStatus(status));
  }

  SessionRegistry* const registry_;
  UploadBudget* const budget_;
  v1::UploadReply* const reply_;
  v1::UploadChunk chunk_;
  std::shared_ptr<Session> session_;
  SharedBytes bytes_;
  uint64_t id_ = 0;
  uint64_t total_ = 0;
  uint64_t reserved_ = 0;
};

}  // namespace

grpc::ServerReadReactor<v1::UploadChunk>* NewUpload(SessionRegistry* registry,
                                                    UploadBudget* budget,
                                                    v1::UploadReply* reply) {
  return new Upload(registry, budget, reply);
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

class Download final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  Download(SessionRegistry* registry, const grpc::ByteBuffer* request) {
    const absl::Status status = Begin(registry, request);
    if (status.ok()) {
      WriteNext();
    } else {
      Finish(ToGrpcStatus(status));
    }
  }

  void OnWriteDone(bool ok) override {
    if (ok) {
      WriteNext();
    } else {
      Finish(grpc::Status::CANCELLED);
    }
  }
  void OnCancel() override { cancelled_.store(true); }
  void OnDone() override {
    // A cut transfer can be repeated.
    if (complete_ && !cancelled_.load()) session_->DropDownload(id_);
    delete this;
  }

 private:
  absl::Status Begin(SessionRegistry* registry,
                     const grpc::ByteBuffer* message) {
    grpc::ByteBuffer copy(*message);  // shares the bytes
    grpc::ProtoBufferReader reader(&copy);
    v1::DownloadRequest request;
    if (!reader.status().ok() || !request.ParseFromZeroCopyStream(&reader)) {
      return absl::InvalidArgumentError(
          "[download] the request must be a DownloadRequest.");
    }
    session_ = registry->FindByToken(request.session_token());
    if (session_ == nullptr) return UnknownSession();
    id_ = request.id();
    absl::StatusOr<SharedBytes> bytes = session_->FindDownload(id_);
    if (!bytes.ok()) return bytes.status();
    bytes_ = *std::move(bytes);
    return absl::OkStatus();
  }

  void WriteNext() {
    const uint64_t size = std::min(kChunkBytes, bytes_->size() - sent_);
    if (size == 0) {
      complete_ = true;
      Finish(grpc::Status::OK);
      return;
    }
    chunk_ = ChunkOf(bytes_, sent_, size);
    sent_ += size;
    StartWrite(&chunk_);
  }

  std::shared_ptr<Session> session_;
  SharedBytes bytes_;
  grpc::ByteBuffer chunk_;
  uint64_t id_ = 0;
  uint64_t sent_ = 0;
  bool complete_ = false;
  std::atomic<bool> cancelled_{false};
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* NewDownload(
    SessionRegistry* registry, const grpc::ByteBuffer* request) {
  return new Download(registry, request);
}

}  // namespace holdfast
