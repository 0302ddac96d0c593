// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// FakeStream: a thread that runs tasks in order, each no sooner than some time
// after it was enqueued. Thread-safety: all methods from any thread, but for
// cpu(): a task's, or anybody's after WaitFor(enqueued()).
#ifndef HOLDFAST_SERVER_FAKE_DEVICE_FAKE_STREAM_H_
#define HOLDFAST_SERVER_FAKE_DEVICE_FAKE_STREAM_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/device.h"
#include "server/fake_device/guarded_memory.h"

namespace holdfast {

// What runs one task at a time, in the order in which they ask for it.
class FakeEngine {
 public:
  // Each takes so much longer.
  explicit FakeEngine(absl::Duration longer) : longer_(longer) {}

  template <typename F>
  absl::Status Run(F task) {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t turn = asked_++;
    changed_.wait(lock, [&] { return done_ == turn; });
    lock.unlock();
    absl::Status status = task();
    absl::SleepFor(longer_);
    lock.lock();
    ++done_;
    changed_.notify_all();
    return status;
  }

 private:
  const absl::Duration longer_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  uint64_t asked_ = 0, done_ = 0;
};

class FakeStream {
 public:
  using Task = std::function<absl::Status(Device& cpu)>;

  // `engine`: what its named tasks run on; null: nothing that others use.
  FakeStream(std::unique_ptr<Device> cpu, absl::Duration lag,
             FakeEngine* engine)
      : cpu_(std::move(cpu)),
        lag_(lag),
        engine_(engine),
        thread_([this] { Loop(); }) {}
  // Runs what is enqueued first.
  ~FakeStream() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // `name` is what times are kept under; "": none are.
  void Enqueue(std::string name, Task task) {
    std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(
        {std::move(task),
         std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(lag_),
         std::move(name), tag_});
    ++enqueued_;
    changed_.notify_all();
  }
  void TimeWork(std::optional<uint64_t> tag) {
    std::lock_guard<std::mutex> lock(mutex_);
    tag_ = tag;
  }
  std::vector<Device::WorkTime> TakeWorkTimes() {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(times_, {});
  }
  // No task begins while it is held.
  void Hold(bool held) {
    std::lock_guard<std::mutex> lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  uint64_t enqueued() {
    std::lock_guard<std::mutex> lock(mutex_);
    return enqueued_;
  }
  // As enqueued(); the time when it is passed is kept.
  uint64_t RecordTimed() {
    std::lock_guard<std::mutex> lock(mutex_);
    timed_.push_back({enqueued_, done_ == enqueued_ ? Now() : 0});
    return enqueued_;
  }
  // When it was passed.
  std::optional<int64_t> TakeTime(uint64_t count) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::optional<int64_t> time;
    while (!timed_.empty() && timed_.front().first <= count) {
      time = timed_.front().second;
      timed_.pop_front();
    }
    return time;
  }
  bool Passed(uint64_t count) {
    std::lock_guard<std::mutex> lock(mutex_);
    return done_ >= count;
  }
  void WaitFor(uint64_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= count; });
  }
  // The first error of a task; forgotten once told.
  absl::Status TakeStatus() {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(status_, absl::OkStatus());
  }
  Device& cpu() { return *cpu_; }

 private:
  struct Waiting {
    Task task;
    std::chrono::steady_clock::time_point start;
    std::string name;
    std::optional<uint64_t> tag;  // its time is kept
  };

  static int64_t Now() {
    return std::chrono::nanoseconds(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  absl::Status Run(const Task& task) {
    const KernelScope scope;
    return task(*cpu_);
  }
  void Loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stop_ || (!held_ && !tasks_.empty()); });
      if (tasks_.empty()) return;
      Waiting next = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      std::this_thread::sleep_until(next.start);
      const int64_t begin = Now();
      absl::Status status = engine_ == nullptr || next.name.empty()
                                ? Run(next.task)
                                : engine_->Run([&] { return Run(next.task); });
      const int64_t end = Now();
      next.task = nullptr;  // what it held goes before anybody hears of it
      lock.lock();
      if (status_.ok()) status_ = std::move(status);
      if (next.tag && !next.name.empty()) {
        times_.push_back({std::move(next.name), *next.tag, begin, end - begin});
      }
      ++done_;
      for (auto& [count, at] : timed_) {
        if (count == done_) at = Now();
      }
      changed_.notify_all();
    }
  }

  const std::unique_ptr<Device> cpu_;
  const absl::Duration lag_;
  FakeEngine* const engine_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Waiting> tasks_;
  uint64_t enqueued_ = 0;
  uint64_t done_ = 0;
  bool stop_ = false;
  bool held_ = false;
  absl::Status status_;
  std::optional<uint64_t> tag_;
  std::vector<Device::WorkTime> times_;
  // Counts, and when they were passed by the steady clock; 0: not yet.
  std::deque<std::pair<uint64_t, int64_t>> timed_;
  std::thread thread_;  // last: it uses all the rest
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_FAKE_DEVICE_FAKE_STREAM_H_
