// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// GrpcConnection: bulk data beside the stream, and control requests.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "client/grpc_calls.h"
#include "client/grpc_connection.h"
#include "client/grpc_stream.h"
#include "client/interrupt.h"
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
    if (!IsCut(status.error_code())) return FromGrpc(status);
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
  absl::Status status = Retry([&](Stub& stub) {
    grpc::ClientContext context;
    Authorize(&context);
    wire::UploadReply reply;
    const auto writer = stub.Upload(&context, &reply);
    wire::UploadChunk chunk;
    chunk.set_session_token(hello_.session_token());
    chunk.set_id(id);
    chunk.set_total_bytes(bytes);
    for (uint64_t done = 0; done < bytes;) {
      const uint64_t size = std::min(kChunkBytes, bytes - done);
      chunk.set_data(static_cast<const char*>(data) + done, size);
      if (!writer->Write(chunk)) break;  // Finish says why
      done += size;
      chunk.clear_session_token();
      chunk.clear_id();
      chunk.clear_total_bytes();
    }
    writer->WritesDone();
    return writer->Finish();
  });
  if (status.ok()) put->set_upload(id);
  return status;
}

absl::Status GrpcConnection::Download(uint64_t id, uint64_t bytes,
                                      std::string* data) {
  data->reserve(bytes);
  const bool resumes = absl::c_linear_search(hello_.features(), kFeatureParts);
  absl::Status status = Retry([&](Stub& stub) {
    if (!resumes) data->clear();
    grpc::ClientContext context;
    Authorize(&context);
    wire::DownloadRequest request;
    request.set_session_token(hello_.session_token());
    request.set_id(id);
    request.set_offset(data->size());
    const auto reader = stub.Download(&context, request);
    wire::DownloadChunk chunk;
    while (reader->Read(&chunk)) {
      if (chunk.data().size() > bytes - data->size()) {
        context.TryCancel();
        break;
      }
      data->append(chunk.data());
    }
    return reader->Finish();
  });
  Discard(id);
  if (status.ok() && data->size() != bytes) {
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
  if (IsCut(status.error_code())) {
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
    if (status.ok() || !IsCut(status.error_code())) break;
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
