// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// GrpcConnection: bulk data beside the stream, and control requests.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "client/grpc_calls.h"
#include "client/grpc_connection.h"
#include "client/grpc_stream.h"
#include "client/interrupt.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "proto/steady_time.h"
#include "proto/version.h"

namespace holdfast::client {
namespace {

constexpr uint64_t kChunkBytes = 1 << 20;
// A larger value would hold up the ops behind it in the stream.
constexpr uint64_t kInlineBytes = 256 << 10;
constexpr absl::Duration kPause = absl::Milliseconds(50);
// How long an ending program tries to tell a daemon that it cannot reach.
constexpr absl::Duration kGoodbyePatience = absl::Seconds(2);
// One attempt to cancel, for somebody who waits in front of it.
constexpr absl::Duration kCancelPatience = absl::Seconds(2);

// How often a wait for the network looks up for Ctrl-C.
constexpr std::chrono::milliseconds kInterruptLook(50);

// A call of many messages, whose waits the user can end: also those for a peer
// that takes nothing, or sends nothing. Messages are bytes, so that those of
// tensors are copied once. REQUIRES: Finish is called.
class BulkCall {
 public:
  explicit BulkCall(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(channel) {}
  ~BulkCall() {
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  BulkCall(const BulkCall&) = delete;
  BulkCall& operator=(const BulkCall&) = delete;

  grpc::ClientContext* context() { return &context_; }
  // Each: false when the call is over; Finish says why.
  bool Start(const std::string& method) {
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(this);
    return Wait();
  }
  bool Write(const grpc::ByteBuffer& message) {
    call_->Write(message, this);
    return Wait();
  }
  bool WritesDone() {
    call_->WritesDone(this);
    return Wait();
  }
  bool Read(grpc::ByteBuffer* message) {
    call_->Read(message, this);
    return Wait();
  }
  grpc::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, this);
    Wait();
    return status;
  }

 private:
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.AsyncNext(
               &tag, &ok, std::chrono::system_clock::now() + kInterruptLook) ==
           grpc::CompletionQueue::TIMEOUT) {
      if (!cancelled_ && InterruptPending(/*locked=*/false)) {
        cancelled_ = true;
        context_.TryCancel();
      }
    }
    return ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool cancelled_ = false;
};

using google::protobuf::internal::WireFormatLite;

// `head`, and behind it `size` bytes in the field of that number.
grpc::ByteBuffer MessageWith(std::string head, int field, const char* data,
                             uint64_t size) {
  using google::protobuf::io::CodedOutputStream;
  uint8_t tag[16];
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(
      WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED),
      tag);
  end = CodedOutputStream::WriteVarint64ToArray(size, end);
  head.append(reinterpret_cast<const char*>(tag), end - tag);
  // Copied: gRPC may have what it sends after the call is over.
  const grpc::Slice slices[2] = {grpc::Slice(head), grpc::Slice(data, size)};
  return grpc::ByteBuffer(slices, 2);
}

// Appends the data of a DownloadChunk, up to `most` bytes in all. False: it is
// none, or more.
bool AppendChunk(grpc::ByteBuffer* message, uint64_t most, std::string* data) {
  constexpr uint32_t kDataTag = GOOGLE_PROTOBUF_WIRE_FORMAT_MAKE_TAG(
      wire::DownloadChunk::kDataFieldNumber,
      WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  grpc::ProtoBufferReader reader(message);
  if (!reader.status().ok()) return false;
  google::protobuf::io::CodedInputStream input(&reader);
  while (const uint32_t tag = input.ReadTag()) {
    if (tag != kDataTag) {
      if (!WireFormatLite::SkipField(&input, tag)) return false;
      continue;
    }
    uint32_t left;
    if (!input.ReadVarint32(&left) || left > most - data->size()) return false;
    while (left > 0) {
      const void* piece;
      int size;
      if (!input.GetDirectBufferPointer(&piece, &size)) return false;
      size = static_cast<int>(std::min<uint32_t>(left, size));
      data->append(static_cast<const char*>(piece), size);
      input.Skip(size);
      left -= size;
    }
  }
  return input.ConsumedEntireMessage();
}

absl::Status NoSharedMemory() {
  return absl::UnimplementedError(
      "[memory] sharing memory with the daemon needs a local session "
      "(unix:...). Got a session over gRPC.");
}

}  // namespace

template <typename Attempt>
absl::Status GrpcConnection::Retry(const Attempt& attempt) {
  SteadyTime failing_since = SteadyTime::Future();
  while (true) {
    const grpc::Status status = [&] {
      const GrpcUse use;
      return attempt(*stub());
    }();
    if (status.ok()) return absl::OkStatus();
    std::unique_lock<std::mutex> lock(mutex_);
    if (ended_) return end_;
    if (!IsCut(status)) return FromGrpc(status);
    failing_since = std::min(failing_since, SteadyNow());
    // As long as the stream itself, which has its own end; and where that is
    // well, for as long as any answer.
    if (!lost_.has_value() &&
        SteadyNow() > failing_since + absl::Seconds(timeout_seconds_)) {
      return place()->HungUp(status.error_message());
    }
    changed_.wait_for(lock, absl::ToChronoMilliseconds(kPause),
                      [this] { return ended_ || stopping_; });
    lock.unlock();
    // What has come over by now is not missed: no command names it.
    if (InterruptPending(/*locked=*/false)) {
      return absl::CancelledError("[session] the wait was interrupted.");
    }
  }
}

uint64_t GrpcConnection::inline_limit() const {
  return hello_.inline_limit() == 0
             ? kInlineBytes
             : std::min(kInlineBytes, hello_.inline_limit());
}

absl::Status GrpcConnection::Upload(const void* data, uint64_t bytes,
                                    BlockMarks* marks, wire::Put* put) {
  // Before they are sent: what the program writes meanwhile is brought again.
  if (marks != nullptr) TakeMarks(data, bytes, marks);
  uint64_t id = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    id = next_upload_++;
  }
  const absl::Status status = Retry([&](Stub&) {
    BulkCall call(channel());
    Authorize(call.context());
    wire::UploadChunk head;
    head.set_session_token(hello_.session_token());
    head.set_id(id);
    head.set_total_bytes(bytes);
    bool ok = call.Start("/holdfast.v1.Holdfast/Upload");
    for (uint64_t done = 0; ok && done < bytes;) {
      const uint64_t size = std::min(kChunkBytes, bytes - done);
      ok = call.Write(
          MessageWith(done == 0 ? head.SerializeAsString() : std::string(),
                      wire::UploadChunk::kDataFieldNumber,
                      static_cast<const char*>(data) + done, size));
      done += size;
    }
    if (ok) call.WritesDone();
    grpc::ByteBuffer reply;
    while (ok && call.Read(&reply)) {
    }
    return call.Finish();
  });
  if (status.ok()) put->set_upload(id);
  return status;
}

absl::Status GrpcConnection::Download(uint64_t id, uint64_t bytes,
                                      std::string* data) {
  data->reserve(bytes);
  const bool resumes = absl::c_linear_search(hello_.features(), kFeatureParts);
  bool malformed = false;
  const absl::Status status = Retry([&](Stub&) {
    if (!resumes) data->clear();
    BulkCall call(channel());
    Authorize(call.context());
    wire::DownloadRequest request;
    request.set_session_token(hello_.session_token());
    request.set_id(id);
    request.set_offset(data->size());
    const grpc::Slice asked(request.SerializeAsString());
    const bool ok = call.Start("/holdfast.v1.Holdfast/Download") &&
                    call.Write(grpc::ByteBuffer(&asked, 1)) &&
                    call.WritesDone();
    grpc::ByteBuffer chunk;
    while (ok && call.Read(&chunk)) {
      if (!AppendChunk(&chunk, bytes, data)) {
        call.context()->TryCancel();
        malformed = true;
        break;
      }
    }
    const grpc::Status status = call.Finish();
    return malformed ? grpc::Status::OK : status;
  });
  Discard(id);
  if (status.ok() && (malformed || data->size() != bytes)) {
    return absl::InternalError(
        absl::StrCat("[read] the daemon must send the tensor's bytes. Got ",
                     data->size(), " instead of ", bytes, "."));
  }
  return status;
}

void GrpcConnection::Discard(uint64_t download) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = downloads_.begin(); it != downloads_.end(); ++it) {
    if (it->second != download) continue;
    downloads_.erase(it);
    // The server holds the bytes until it is told.
    Tell();
    return;
  }
}

absl::StatusOr<MappedBlock> GrpcConnection::Allocate(uint64_t) {
  return NoSharedMemory();
}

absl::StatusOr<MappedBytes> GrpcConnection::Locate(const wire::Place&) {
  return NoSharedMemory();
}

absl::StatusOr<wire::StatsReply> GrpcConnection::Stats(uint64_t memory_of) {
  wire::StatsRequest request;
  request.set_memory_of(memory_of);
  wire::StatsReply reply;
  absl::Status status = Retry([&](Stub& stub) {
    grpc::ClientContext context;
    Authorize(&context);
    context.set_deadline(
        absl::ToChronoTime(absl::Now() + absl::Seconds(timeout_seconds_)));
    return stub.Stats(&context, request, &reply);
  });
  if (!status.ok()) return status;
  return reply;
}

absl::Status GrpcConnection::Cancel(uint64_t through,
                                    const std::string& where) {
  const GrpcUse use;
  grpc::ClientContext context;
  Authorize(&context);
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCancelPatience));
  wire::CancelRequest request;
  request.set_session_token(hello_.session_token());
  request.set_through(through);
  request.set_where(where);
  wire::CancelReply reply;
  const grpc::Status status = stub()->Cancel(&context, request, &reply);
  if (status.ok()) return absl::OkStatus();
  // Said twice it means the same, so that any cut is reason to say it again.
  if (IsCut(status)) {
    return absl::UnavailableError(status.error_message());
  }
  return FromGrpc(status);
}

absl::Status GrpcConnection::Goodbye(Parting parting) {
  const bool keep = parting != Parting::kEnd;
  wire::GoodbyeRequest request;
  request.set_session_token(hello_.session_token());
  request.set_keep(keep);
  request.set_within_grace(parting == Parting::kLeave);
  const absl::Duration timeout = absl::Seconds(timeout_seconds_);
  // A program that ends tries for less long than one that leaves something
  // behind. A daemon that is only slow has the whole timeout in any case.
  const SteadyTime deadline =
      SteadyNow() + (keep ? timeout : std::min(timeout, kGoodbyePatience));
  grpc::Status status;
  bool repeated = false;
  while (true) {
    status = [&] {
      const GrpcUse use;
      grpc::ClientContext context;
      Authorize(&context);
      context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
      wire::GoodbyeReply reply;
      return stub()->Goodbye(&context, request, &reply);
    }();
    if (!IsCut(status)) break;
    if (SteadyNow() > deadline) break;
    repeated = true;
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoMilliseconds(kPause),
                      [this] { return stopping_; });
    if (stopping_) break;
  }
  // The reply of an attempt before was lost.
  if (!keep && repeated && status.error_code() == grpc::StatusCode::NOT_FOUND) {
    status = grpc::Status::OK;
  }
  // A session without a name cannot be left: it goes on.
  if (keep && status.error_code() == grpc::StatusCode::INVALID_ARGUMENT) {
    return FromGrpc(status);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  End(absl::FailedPreconditionError(absl::StrCat(
      "[session] the session at ", address_, " is closed. Connect again.")));
  return FromGrpc(status);
}

}  // namespace holdfast::client
