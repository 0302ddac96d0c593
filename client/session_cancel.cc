// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionCore: calling back what was submitted, and not submitting too much
// ahead of the device.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/interrupt.h"
#include "client/session_core.h"

namespace holdfast::client {

namespace {

// The end of a place that is long for a message; whole characters of UTF-8.
std::string Shortened(const std::string& where) {
  constexpr size_t kMost = 512;
  if (where.size() <= kMost) return where;
  size_t begin = where.size() - kMost;
  while (begin < where.size() && (where[begin] & 0xC0) == 0x80) ++begin;
  return where.substr(begin);
}

}  // namespace

absl::StatusOr<uint64_t> SessionCore::Cancel(
    const std::string& where, const std::function<bool()>& interrupted) {
  constexpr absl::Duration kPause = absl::Milliseconds(50);
  if (!usable()) return Unusable();
  if (!cancels_) {
    return absl::UnimplementedError(absl::StrCat(
        "[cancel] the daemon must know the request. Got ", hello_.server(),
        " at ", address_, ". Use the same version on both sides."));
  }
  // A command is counted once it is sent: what is submitted from now on has a
  // higher number.
  const uint64_t through = last_op_sequence();
  const std::string place = Shortened(where);
  uint64_t before = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    before = cancelled_;
  }
  while (true) {
    const absl::Status status = connection_->Cancel(through, place);
    if (status.ok()) break;
    if (!usable()) return Unusable();
    if (!absl::IsUnavailable(status)) return status;
    if (interrupted != nullptr && interrupted()) {
      return absl::CancelledError("[cancel] it was interrupted.");
    }
    absl::SleepFor(kPause);
  }
  auto read = std::make_unique<PendingRead>();
  read->barrier = true;
  read->progress = true;
  absl::StatusOr<uint64_t> id = SendRead(std::move(read), 0, false);
  if (!id.ok()) return id.status();
  const absl::Status status = WaitRead(*id, interrupted).status();
  if (!status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  return cancelled_ - before;
}

void SessionCore::NoteDropped(const wire::ReadResult& result) {
  if (result.lost_size() == 0 && result.cancelled() == 0) return;
  std::lock_guard<std::mutex> lock(mutex_);
  lost_.insert(result.lost().begin(), result.lost().end());
  cancelled_ = std::max(cancelled_, result.cancelled());
}

void SessionCore::NoteInterrupt(uint64_t interrupts) {
  if (!cancels_ || !usable() || g_interrupts.load() == interrupts) return;
  const uint64_t probe = interrupt_probe_.load();
  if (probe != 0 && !run_ahead_.answered(probe)) {
    connection_->Cancel(last_op_sequence(), "the second Ctrl-C").IgnoreError();
  }
  // Another thread may hold it that waits for room; then the next Ctrl-C counts
  // as the first.
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) interrupt_probe_.store(SendProbe());
}

// ---- run-ahead

uint64_t SessionCore::SendProbe() {
  const uint64_t probe = run_ahead_.Probe();
  wire::Command command;
  command.mutable_read()->set_id(kFirstProbe + probe);
  command.mutable_read()->set_progress(true);
  // A connection that refuses it has ended, and then nobody waits for room.
  SendCommand(command).IgnoreError();
  return probe;
}

void SessionCore::TakeProbe(const wire::ReadResult& result) {
  run_ahead_.Answered(result.id() - kFirstProbe, result.device_seconds());
  NoteDropped(result);
  // Empty, so that a waiter between its look and its wait is not missed.
  { std::lock_guard<std::mutex> lock(reads_mutex_); }
  read_done_.notify_all();
}

absl::Status SessionCore::AwaitRoom(const std::function<bool()>& interrupted) {
  if (ABSL_PREDICT_TRUE(!too_far_ahead())) return absl::OkStatus();
  const uint64_t interrupts = g_interrupts.load();
  while (too_far_ahead()) {
    if (!usable()) return Unusable();
    {
      std::unique_lock<std::mutex> lock(reads_mutex_);
      if (too_far_ahead()) WaitForEvents(&lock);
    }
    if (too_far_ahead() && interrupted != nullptr && interrupted()) {
      NoteInterrupt(interrupts);
      return absl::CancelledError("[session] the wait was interrupted.");
    }
  }
  return absl::OkStatus();
}

}  // namespace holdfast::client
