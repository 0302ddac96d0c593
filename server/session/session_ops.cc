// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Session: how its ops are stopped, and when.
#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

#include "server/session/session.h"

namespace holdfast {

void Session::StopRunning(absl::Status why) {
  executor_->stop()->StopOne(executor_->stop()->running(), std::move(why));
}

void Session::StopOp(uint64_t running_op, absl::Status why) {
  executor_->stop()->StopOne(running_op, std::move(why));
}

void Session::StopThrough(uint64_t op_sequence, absl::Status why) {
  executor_->stop()->StopThrough(op_sequence, std::move(why));
}

void Session::StopForGood(absl::Status why) {
  executor_->stop()->StopThrough(StopSignal::kNone, std::move(why));
}

void Session::set_op_seconds(double seconds) {
  // An op ends within that part of its time after it, and others' a fifth of a
  // second after theirs (Watchdog::Options.look_every).
  constexpr double kPart = 1.0 / 20;
  constexpr double kUsual = 0.2, kLeast = 0.001;
  const double every = seconds * kPart;
  close_looks_us_.store(
      seconds > 0 && every < kUsual
          ? static_cast<int32_t>(std::max(every, kLeast) * 1e6)
          : 0);
  op_seconds_.store(seconds);
  executor_->set_op_seconds(seconds);
}

void Session::NoteHangUp(const Connection* connection, SteadyTime now) {
  if (connection_now_.load() != connection || life_.leaving()) return;
  // A program on this machine that is gone does not resume, and without a name
  // nobody else finds the session.
  const bool for_good = local() && name().empty();
  const SteadyTime until = for_good ? now : now + life_.grace();
  abandoned_us_.store(until.ToMicros());
}

bool Session::client_is_gone() const {
  if (abandoned_us_.load() != INT64_MAX) return true;
  std::function<bool()> look;
  {
    std::lock_guard<std::mutex> lock(bulk_mutex_);
    look = hang_up_look_;
  }
  return look != nullptr && look();
}

}  // namespace holdfast
