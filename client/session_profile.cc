// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionCore: profiling. The client notes its calls, the server its
// executions; the numbers of the commands tie them together.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/session_core.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::client {
namespace {

// Some 50 MB of them.
constexpr uint64_t kMaxSubmissions = uint64_t{1} << 20;
// The clocks are compared this often; the quickest answer counts.
constexpr int kClockReads = 8;

int32_t ThreadId() {
  thread_local const auto id = static_cast<int32_t>(syscall(SYS_gettid));
  return id;
}

ProfiledKind KindOf(wire::ProfileRecord::Kind kind) {
  switch (kind) {
    case wire::ProfileRecord::PUT:
      return ProfiledKind::kPut;
    case wire::ProfileRecord::BACKWARD:
      return ProfiledKind::kBackward;
    case wire::ProfileRecord::READ:
      return ProfiledKind::kRead;
    default:
      return ProfiledKind::kOp;
  }
}

// The server's ops by its ids, which may be more than ours.
std::vector<std::string> OpNames(const wire::HelloReply& hello) {
  std::vector<std::string> names;
  if (hello.ops().empty()) {
    for (const OpSchema& schema : AllOps()) names.push_back(schema.name);
    return names;
  }
  constexpr uint32_t kMaxIds = 1 << 16;
  for (const wire::OpName& op : hello.ops()) {
    if (op.id() >= kMaxIds) continue;
    if (op.id() >= names.size()) names.resize(op.id() + 1);
    names[op.id()] = op.name();
  }
  return names;
}

Execution ToExecution(const wire::ProfileRecord& record,
                      const std::vector<std::string>& names) {
  Execution execution;
  execution.kind = KindOf(record.kind());
  switch (execution.kind) {
    case ProfiledKind::kPut:
      execution.name = "put";
      break;
    case ProfiledKind::kBackward:
      execution.name = "backward";
      break;
    case ProfiledKind::kRead:
      execution.name = "read";
      break;
    default:
      execution.name = record.op() < names.size() ? names[record.op()]
                                                  : absl::StrCat(record.op());
  }
  execution.inplace = record.inplace();
  execution.failed = record.failed();
  execution.in_backward = record.in_backward();
  execution.sequence = record.op_sequence();
  execution.forward_sequence = record.forward_op_sequence();
  execution.start_ns = static_cast<int64_t>(record.start_ns());
  execution.duration_ns = static_cast<int64_t>(record.duration_ns());
  if (record.waited_ns() != 0) {
    execution.waited_ns = static_cast<int64_t>(record.waited_ns());
  }
  execution.output_bytes = record.output_bytes();
  for (const wire::IntList& shape : record.input_shapes()) {
    execution.input_shapes.emplace_back(shape.values().begin(),
                                        shape.values().end());
  }
  return execution;
}

}  // namespace

void SessionCore::AddSubmission(ProfiledKind kind, uint64_t sequence,
                                int64_t begin_ns, int16_t op, bool inplace) {
  // The profile may have ended, or begun anew, since the call began.
  if (!profiling_.load(std::memory_order_relaxed)) return;
  if (profile_.submissions.size() >= max_submissions_) {
    ++profile_.dropped_submissions;
    return;
  }
  Submission submission;
  submission.kind = kind;
  submission.inplace = inplace;
  submission.op = op;
  submission.thread = ThreadId();
  submission.sequence = sequence;
  submission.begin_ns = begin_ns;
  submission.end_ns = ProfileNow();
  profile_.submissions.push_back(submission);
}

absl::StatusOr<wire::ProfileChunk> SessionCore::ReadChunk(
    const std::function<bool()>& interrupted, ClockOffset* clock) {
  auto read = std::make_unique<PendingRead>();
  read->profile = true;
  const int64_t sent = ProfileNow();
  absl::StatusOr<uint64_t> id = SendRead(std::move(read), 0, /*place=*/false);
  if (!id.ok()) return id.status();
  absl::StatusOr<ReadValue> value = FinishRead(*id, interrupted);
  if (!value.ok()) return value.status();
  const int64_t received = ProfileNow();
  wire::ProfileChunk chunk;
  if (!chunk.ParseFromArray(value->data,
                            static_cast<int>(value->spec.nbytes())) ||
      chunk.now_ns() == 0) {
    return absl::UnimplementedError(absl::StrCat(
        "[profile] the daemon must know profiling. Got ", hello_.server(),
        ", whose answer holds no profile. Use the same version on both "
        "sides."));
  }
  const int64_t error = (received - sent + 1) / 2;
  if (error < clock->error_ns) {
    // Its clock was read somewhere between.
    clock->error_ns = error;
    clock->offset_ns =
        sent + (received - sent) / 2 - static_cast<int64_t>(chunk.now_ns());
  }
  return chunk;
}

absl::Status SessionCore::StartProfile(
    const ProfileOptions& options, const std::function<bool()>& interrupted) {
  if (!usable()) return Unusable();
  const auto refuse = [this] {
    return absl::FailedPreconditionError(absl::StrCat(
        "[profile] a session must have one profile at a time. Got a second "
        "one of the session at ",
        address_, "."));
  };
  // The reads below would take the records of one that runs.
  if (profiling_.load(std::memory_order_relaxed)) return refuse();
  ClockOffset clock;
  if (local_) {
    clock.error_ns = 0;
  } else {
    // The first waits for what was sent before, so it tells little.
    for (int i = 0; i < 1 + kClockReads; ++i) {
      absl::StatusOr<wire::ProfileChunk> chunk = ReadChunk(interrupted, &clock);
      if (!chunk.ok()) return chunk.status();
    }
  }
  wire::Command command;
  command.mutable_profile()->set_on(true);
  command.mutable_profile()->set_shapes(options.shapes);
  command.mutable_profile()->set_max_records(options.max_records);
  std::lock_guard<std::mutex> lock(mutex_);
  if (profiling_.load(std::memory_order_relaxed)) return refuse();
  absl::Status status = SendCommand(command);
  if (!status.ok()) return status;
  profile_ = {};
  clock_ = clock;
  max_submissions_ = options.max_records == 0
                         ? kMaxSubmissions
                         : std::min(kMaxSubmissions, options.max_records);
  profiling_.store(true, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::StatusOr<Profile> SessionCore::StopProfile(
    const std::function<bool()>& interrupted) {
  if (!usable()) return Unusable();
  Profile profile;
  ClockOffset clock;
  {
    wire::Command command;
    command.mutable_profile()->set_on(false);
    std::lock_guard<std::mutex> lock(mutex_);
    if (!profiling_.load(std::memory_order_relaxed)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "[profile] there must be a profile to end. Got none of the session "
          "at ",
          address_, "."));
    }
    absl::Status status = SendCommand(command);
    profiling_.store(false, std::memory_order_relaxed);
    profile = std::exchange(profile_, {});
    clock = clock_;
    if (!status.ok()) return status;
  }
  const std::vector<std::string> names = OpNames(hello_);
  bool more = true;
  while (more) {
    absl::StatusOr<wire::ProfileChunk> chunk = ReadChunk(interrupted, &clock);
    if (!chunk.ok()) return chunk.status();
    more = chunk->more();
    profile.dropped_executions = chunk->dropped();
    profile.dropped_kernels = chunk->dropped_kernels();
    for (const wire::ProfileRecord& record : chunk->records()) {
      profile.executions.push_back(ToExecution(record, names));
    }
    for (const wire::DeviceWork& work : chunk->kernels()) {
      profile.kernels.push_back({work.name(), work.stream(), work.op_sequence(),
                                 static_cast<int64_t>(work.start_ns()),
                                 static_cast<int64_t>(work.duration_ns())});
    }
  }
  if (local_) return profile;
  profile.clock_offset_ns = clock.offset_ns;
  profile.clock_error_ns = clock.error_ns;
  for (Execution& execution : profile.executions) {
    execution.start_ns += clock.offset_ns;
  }
  for (Kernel& kernel : profile.kernels) kernel.start_ns += clock.offset_ns;
  return profile;
}

}  // namespace holdfast::client
