// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/waits/slow_calls.h"

#include <chrono>
#include <exception>
#include <utility>

namespace holdfast {
namespace {

// How long others wait for a look, at most.
constexpr std::chrono::milliseconds kLookEvery{1};

}  // namespace

SlowCalls::SlowCalls() : thread_([this] { Loop(); }) {}

SlowCalls::~SlowCalls() {
  {
    RankedLock lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SlowCalls::Post(std::function<void()> call) {
  {
    RankedLock lock(mutex_);
    calls_.push_back(std::move(call));
  }
  changed_.notify_all();
}

void SlowCalls::Run(const std::function<void()>& call,
                    const std::function<void()>& look) {
  bool done = false;  // guarded by mutex_
  std::exception_ptr thrown;
  RankedLock lock(mutex_);
  calls_.push_back([&] {
    try {
      call();
    } catch (...) {
      thrown = std::current_exception();
    }
    RankedLock finished(mutex_);
    done = true;
    changed_.notify_all();
  });
  changed_.notify_all();
  // The one wait of a thread that must not wait: so that others do not wait
  // for it, it looks.
  while (!changed_.wait_for(lock, kLookEvery, [&] { return done; })) {
    lock.unlock();
    look();
    lock.lock();
  }
  lock.unlock();
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void SlowCalls::Loop() {
  RankedLock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return end_ || !calls_.empty(); });
    if (calls_.empty()) return;
    std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    call();
    call = nullptr;  // what it owns takes locks of its own
    lock.lock();
  }
}

}  // namespace holdfast
