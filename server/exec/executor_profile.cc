// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: recording of what runs, for the client's profiler.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/place_op.h"
#include "proto/profile_clock.h"
#include "server/exec/executor.h"

namespace holdfast {
namespace {

// Records of one reply: little enough not to hold up other sessions.
constexpr uint64_t kChunkBytes = 256 << 10;
// Of a reply that is not records.
constexpr uint64_t kChunkHeader = 64;

}  // namespace

absl::Status Executor::ApplyProfile(const v1::Profile& request) {
  profiling_ = request.on();
  if (profiling_) {
    profile_ = std::make_unique<ProfileBuffer>(request);
  } else {
    TimeWork(std::nullopt);
  }
  return absl::OkStatus();
}

void Executor::TimeWork(std::optional<uint64_t> tag) {
  if (!staging_) return;  // the command is the work
  devices_.TimeWork(tag);
}

void Executor::NoteWork() {
  if (!staging_) return;
  const auto note = [&](Device* device, StreamId stream, std::string name) {
    profile_->NoteWork(name, device->TakeWorkTimes(stream));
  };
  devices_.ForEach([&](int place, const SessionDevice& one) {
    const std::string name = DeviceText(1 + place);
    note(one.device, one.stream, name);
    const auto [up, down] = std::pair(one.copies->up(), one.copies->down());
    if (up) note(one.device, *up, absl::StrCat(name, " upload"));
    if (down) note(one.device, *down, absl::StrCat(name, " download"));
  });
}

absl::Status Executor::ApplyReadProfile(const v1::Read& read) {
  if (read.handle() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("[protocol] a read of the profile names no tensor. Got "
                     "handle ",
                     read.handle()));
  }
  v1::ReadResult result;
  result.set_id(read.id());
  // A profile that has ended is told when the devices have done all of it.
  if (staging_ && profile_ != nullptr && !profiling_) {
    WaitingRead waiting;
    waiting.points = devices_.RecordPoints();
    waiting.result = std::move(result);
    waiting.profile = true;
    reads_.push_back(std::move(waiting));
    FinishReads();
  } else {
    AnswerProfile(std::move(result));
  }
  return absl::OkStatus();
}

void Executor::AnswerProfile(v1::ReadResult result) {
  v1::ProfileChunk chunk;
  if (profile_ != nullptr) {
    NoteWork();
    const uint64_t room = std::min(kChunkBytes, options_.inline_limit_bytes);
    profile_->Take(std::max(room, kChunkHeader) - kChunkHeader, &chunk);
    if (!profiling_ && profile_->empty()) profile_.reset();
  }
  chunk.set_now_ns(ProfileNow());
  chunk.SerializeToString(result.mutable_data());
  sink_->Reply(std::move(result));
}

absl::Status Executor::ApplyNoted(const v1::Command& command) {
  using Record = v1::ProfileRecord;
  Record::Kind kind;
  uint64_t sequence = op_sequence_ + 1;
  const BackwardPass* pass = nullptr;
  switch (command.kind_case()) {
    case v1::Command::kOp:
      kind = Record::OP;
      break;
    case v1::Command::kPut:
      kind = Record::PUT;
      break;
    case v1::Command::kBackward:
      kind = Record::BACKWARD;
      break;
    case v1::Command::kBackwardAnswer:
      if (backwards_.empty()) return ApplyCommand(command);
      kind = Record::BACKWARD;
      sequence = backwards_.back()->op_sequence;
      pass = backwards_.back()->pass.get();
      break;
    case v1::Command::kRead:
      if (command.read().profile() || command.read().progress()) {
        return ApplyCommand(command);
      }
      kind = Record::READ;
      sequence = command.read().id();
      break;
    default:
      return ApplyCommand(command);
  }
  profile_->Begin(kind, sequence, batch_received_ns_);
  if (kind == Record::OP) {
    profile_->SetOp(command.op().op(), command.op().inplace());
  }
  profile_->set_pass(pass);
  runner_.set_profile(profile_.get());
  TimeWork(sequence);
  absl::Status status = ApplyCommand(command);
  runner_.set_profile(nullptr);
  profile_->set_pass(nullptr);
  if (status.ok()) profile_->End();
  return status;
}

void Executor::ContinueNoted(absl::FunctionRef<bool()> yield) {
  const PendingBackward& top = *backwards_.back();
  profile_->Begin(v1::ProfileRecord::BACKWARD, top.op_sequence,
                  /*received_ns=*/0);
  profile_->set_pass(top.pass.get());
  TimeWork(top.op_sequence);
  runner_.set_profile(profile_.get());
  ContinuePass(yield);
  runner_.set_profile(nullptr);
  profile_->set_pass(nullptr);
  profile_->End();
}

}  // namespace holdfast
