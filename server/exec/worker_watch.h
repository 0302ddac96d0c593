// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// WorkerWatch: looks at the worker from outside, a few times a second, and
// tells of a turn that lasts: the worker itself reads no clock for that.
// Thread-safety: `look` is called on the watch's own thread.
#ifndef HOLDFAST_SERVER_EXEC_WORKER_WATCH_H_
#define HOLDFAST_SERVER_EXEC_WORKER_WATCH_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/time/time.h"

namespace holdfast {

class Worker;

class WorkerWatch {
 public:
  // What the worker was at when it was looked at, and when it was looked at
  // before.
  struct Turn {
    uint64_t number = 0;
    uint64_t session = 0;   // the number of the session that has it
    absl::Duration lasted;  // so far, at least
  };
  using Look = std::function<void(const Turn&)>;

  // `worker` must outlive the watch, which must end before it stops.
  WorkerWatch(const Worker* worker, absl::Duration every, Look look);
  ~WorkerWatch();

 private:
  void Watch();

  const Worker* const worker_;
  const absl::Duration every_;
  const Look look_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;    // guarded by mutex_
  std::thread thread_;  // last: it uses the rest
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_WORKER_WATCH_H_
