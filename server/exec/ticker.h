// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ticker: calls a function again and again on a thread of its own, which may
// wait: what is due once a second waits for no op, and no op for it.
// Thread-safety: ends on the thread that made it, after the call under way.
#ifndef HOLDFAST_SERVER_EXEC_TICKER_H_
#define HOLDFAST_SERVER_EXEC_TICKER_H_

#include <functional>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "server/waits/ranked_mutex.h"

namespace holdfast {

class Ticker {
 public:
  Ticker(absl::Duration every, std::function<void()> tick)
      : every_(every), tick_(std::move(tick)), thread_([this] { Loop(); }) {}
  ~Ticker() {
    {
      RankedLock lock(mutex_);
      end_ = true;
    }
    ended_.notify_one();
    thread_.join();
  }

 private:
  void Loop() {
    RankedLock lock(mutex_);
    while (!ended_.wait_for(lock, absl::ToChronoNanoseconds(every_),
                            [this] { return end_; })) {
      lock.unlock();
      tick_();
      lock.lock();
    }
  }

  const absl::Duration every_;
  const std::function<void()> tick_;
  RankedMutex mutex_{LockRank::kWatch};
  RankedCondition ended_;
  bool end_ = false;    // guarded by mutex_
  std::thread thread_;  // last: it uses the rest
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_TICKER_H_
