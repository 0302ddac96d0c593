// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// WorkerAside: the threads that wait in the worker's place. One takes memory,
// which an op waits for; the other gives back what sessions that have ended
// leave, however much that is, and nobody waits for it who does not have to.
// Thread-safety: the worker's thread, and Finish from any.
#ifndef HOLDFAST_SERVER_EXEC_WORKER_ASIDE_H_
#define HOLDFAST_SERVER_EXEC_WORKER_ASIDE_H_

#include <functional>
#include <utility>

#include "server/memory/heap_meter.h"
#include "server/waits/no_wait.h"
#include "server/waits/slow_calls.h"

namespace holdfast {

class WorkerAside final : public Aside {
 public:
  // `look` is called while the worker waits, about once a millisecond.
  explicit WorkerAside(std::function<void()> look) : look_(std::move(look)) {}

  void Run(const std::function<void()>& call) override {
    const HeapMeter::Elsewhere elsewhere;
    takes_.Run(call, look_);
  }
  void Post(std::function<void()> call) override {
    const HeapMeter::Elsewhere elsewhere;
    gives_.Post(std::move(call));
  }
  void Finish() override {
    const HeapMeter::Elsewhere elsewhere;
    gives_.Run([] {}, look_);
  }

 private:
  const std::function<void()> look_;
  SlowCalls takes_, gives_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_WORKER_ASIDE_H_
