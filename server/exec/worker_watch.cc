// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/worker_watch.h"

#include <chrono>
#include <utility>

#include "proto/steady_time.h"
#include "server/exec/worker.h"

namespace holdfast {

WorkerWatch::WorkerWatch(const Worker* worker, absl::Duration every, Look look)
    : worker_(worker),
      every_(every),
      look_(std::move(look)),
      thread_([this] { Watch(); }) {}

WorkerWatch::~WorkerWatch() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void WorkerWatch::Watch() {
  uint64_t number = 0;
  SteadyTime since;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_.wait_for(lock, absl::ToChronoNanoseconds(every_),
                          [this] { return end_; })) {
    const Worker::Turn turn = worker_->turn();
    const SteadyTime now = SteadyNow();
    if (turn.number != number || !turn.under_way()) {
      number = turn.number;
      since = now;
      continue;
    }
    lock.unlock();
    look_({turn.number, turn.session, now - since});
    lock.lock();
  }
}

}  // namespace holdfast
