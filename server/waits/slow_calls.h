// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SlowCalls: a thread that makes calls which may take long, one after the
// other, for threads that must not wait.
// Thread-safety: any thread.
#ifndef HOLDFAST_SERVER_WAITS_SLOW_CALLS_H_
#define HOLDFAST_SERVER_WAITS_SLOW_CALLS_H_

#include <deque>
#include <functional>
#include <thread>

#include "server/waits/ranked_mutex.h"

namespace holdfast {

class SlowCalls {
 public:
  SlowCalls();
  ~SlowCalls();  // when all are done

  // Must not throw.
  void Post(std::function<void()> call);
  // Returns when the call, and all that was posted before, is done. Meanwhile
  // the caller does `look`, about once a millisecond. What the call throws is
  // thrown here.
  void Run(const std::function<void()>& call,
           const std::function<void()>& look);

 private:
  void Loop();

  RankedMutex mutex_{LockRank::kAside};
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> calls_;  // guarded by mutex_
  bool end_ = false;                         // likewise
  std::thread thread_;                       // last: it uses the rest
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_WAITS_SLOW_CALLS_H_
