// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/watchdog.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ops/check.h"
#include "ops/op_schema.h"
#include "server/exec/op_runner.h"
#include "server/log/stack_text.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

// A part of it is the time of a look: who is late by that much is found soon.
constexpr int kLooksPerLate = 10;
constexpr absl::Duration kSoonest = absl::Milliseconds(1);
// How long to wait for the worker to tell its stack: it may be where no signal
// gets through.
constexpr absl::Duration kAnswerWithin = absl::Milliseconds(500);

// What the worker tells when it is asked by the signal. Both stay for good: the
// answer may come late.
CallStack answer;
std::atomic<bool> answered{false};

int StackSignal() { return SIGRTMIN + 4; }

void TellStack(int) {
  const int saved = errno;
  if (!answered.load(std::memory_order_acquire)) {
    answer = CallStack::Here(/*skip=*/1);
    answered.store(true, std::memory_order_release);
  }
  errno = saved;
}

// "": the thread did not answer.
std::string StackOf(pid_t thread) {
  answered.store(false);
  if (syscall(SYS_tgkill, getpid(), thread, StackSignal()) != 0) return "";
  const absl::Time until = absl::Now() + kAnswerWithin;
  while (!answered.load(std::memory_order_acquire)) {
    if (absl::Now() >= until) {
      answered.store(true);  // whoever comes late writes nothing
      return "";
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
  return StackText(answer.span());
}

}  // namespace

Watchdog::Watchdog(Worker* worker, Options options, Lasts lasts)
    : worker_(worker), options_(options), lasts_(std::move(lasts)) {
  struct sigaction action = {};
  action.sa_handler = &TellStack;
  action.sa_flags = SA_RESTART;
  sigaction(StackSignal(), &action, nullptr);
  thread_ = std::thread([this] { Loop(); });
}

Watchdog::~Watchdog() {
  stop_.store(true);
  worker_->close_looks()->Wake();
  thread_.join();
}

absl::Status Watchdog::health(std::string* busy) const {
  RankedLock lock(mutex_);
  *busy = busy_;
  return health_;
}

void Watchdog::Loop() {
  const absl::Duration every =
      std::min(options_.late_after / kLooksPerLate, options_.look_every);
  CloseLooks* const close = worker_->close_looks();
  SteadyTime last = SteadyNow(), close_until = SteadyTime::Past();
  absl::Duration next = every;
  while (true) {
    close->Sleep(next);
    if (stop_.load()) return;
    const SteadyTime now = SteadyNow();
    const absl::Duration close_every = close->every();
    const bool closely = close_every < every;
    if (!closely) {
      close_until = SteadyTime::Past();
    } else if (close_until == SteadyTime::Past()) {
      close_until = now + every;
    } else if (now >= close_until) {
      close->End();
    }
    // Where this thread did not run, as when the process was stopped, the
    // worker may not have run either.
    const absl::Duration wanted =
        Look(std::min(now - last, 2 * every), closely);
    last = now;
    next = std::max(std::min({every, close_every, wanted}), kSoonest);
  }
}

absl::Duration Watchdog::Look(absl::Duration since_last, bool close) {
  absl::Duration next = absl::InfiniteDuration();
  const Worker::Turn turn = worker_->turn();
  if (turn.under_way() && (close || turn.number == turn_) &&
      lasts_ != nullptr) {
    next = lasts_(turn);
  }
  turn_ = turn.number;
  LookAtProgress(since_last);
  return next;
}

void Watchdog::LookAtProgress(absl::Duration since_last) {
  const uint64_t turns = worker_->turns();
  const uint64_t looks = worker_->looks();
  if (turns != turns_ || worker_->thread() == 0) {
    if (was_stuck_) {
      spdlog::info("the worker goes on after {} s",
                   absl::ToInt64Seconds(silent_));
    }
    turns_ = turns;
    silent_ = unlooked_ = absl::ZeroDuration();
    next_line_ = options_.late_after;
    was_stuck_ = false;
    seconds_late_.store(0);
    RankedLock lock(mutex_);
    health_ = absl::OkStatus();
    busy_.clear();
    return;
  }
  silent_ += since_last;
  unlooked_ = looks != looks_ ? absl::ZeroDuration() : unlooked_ + since_last;
  looks_ = looks;
  worker_->AskForLook();
  if (silent_ < options_.late_after) return;
  seconds_late_.store(absl::ToDoubleSeconds(silent_));
  const bool silent = unlooked_ >= options_.late_after;
  const bool deaf = silent && RunningKernel() >= 0;
  Tell(silent && (!deaf || unlooked_ >= options_.deaf_at_most), deaf);
}

std::string Watchdog::Doing() const {
  std::string text;
  if (const int kernel = RunningKernel(); kernel >= 0) {
    absl::StrAppend(&text, "op ", AllOps()[kernel].name);
  } else {
    absl::StrAppend(&text, "no op");
  }
  if (const uint64_t session = worker_->session(); session != 0) {
    absl::StrAppend(&text, " of session ", session);
  }
  return text;
}

void Watchdog::Tell(bool stuck, bool deaf) {
  const int64_t seconds = absl::ToInt64Seconds(silent_);
  const std::string doing = Doing();
  if (stuck && !was_stuck_) {
    times_stuck_.fetch_add(1);
    next_line_ = silent_;  // it was told as busy before
  }
  was_stuck_ = stuck;
  {
    RankedLock lock(mutex_);
    busy_ = absl::StrCat("the thread that runs ops has been busy with ", doing,
                         " for ", seconds, " s",
                         deaf ? ", which lets nobody be answered" : "");
    health_ = absl::OkStatus();
    if (stuck) {
      health_ = absl::UnavailableError(absl::StrCat(
          "the thread that runs ops has made no progress for ", seconds,
          " s, in ", doing, "; its stack is in the daemon's log"));
    }
  }
  if (silent_ < next_line_) return;
  next_line_ = silent_ + std::min(silent_, options_.most_between_lines);
  if (!stuck && !deaf) {
    spdlog::info("the worker is busy with {} for {} s now", doing, seconds);
    return;
  }
  const std::string stack = StackOf(worker_->thread());
  spdlog::warn("the worker has made no progress for {} s, in {}; stack: {}",
               seconds, doing,
               stack.empty() ? "none, it takes no signal" : stack);
}

}  // namespace holdfast
