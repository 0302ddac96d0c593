// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ParallelFor: splits one kernel's index range over the threads that its
// context grants, and long ranges into pieces between which it looks whether
// the kernel is to stop. What a callback throws reaches the caller, whichever
// thread threw it. SerialFor: the same on the calling thread, in order.
// Thread-safety: reentrant; the callback runs on several threads at once.
#ifndef HOLDFAST_KERNELS_CPU_PARALLEL_H_
#define HOLDFAST_KERNELS_CPU_PARALLEL_H_

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "kernels/kernel.h"

namespace holdfast::cpu {

// How far one thread goes at a time in a range, so that it looks about once a
// millisecond. A range of few grains is one piece, and no clock is read.
// Thread-safety: none, it is one thread's.
class Pace {
 public:
  static constexpr int64_t kWholeGrains = 4;

  Pace(const KernelContext& context, int64_t n, int64_t grain, int64_t align)
      : align_(align) {
    // A loop with a grain of 1 has few items of much work.
    if (context.stop == nullptr || n <= (grain > 1 ? kWholeGrains * grain : 1))
      return;
    piece_ = (grain + align - 1) / align * align;
    began_ = Clock::now();
  }

  // Where a piece that begins there ends.
  int64_t End(int64_t begin, int64_t end) const {
    return end - begin > piece_ ? begin + piece_ : end;
  }
  // Between two pieces. False: the rest is not to be done.
  [[gnu::noinline]] bool Next(const KernelContext& context) {
    if (context.Stopped()) return false;
    const Clock::time_point now = Clock::now();
    const auto took = now - began_;
    began_ = now;
    if (took < kLeast) {
      piece_ *= 2;
    } else if (took > kMost && piece_ > align_) {
      piece_ = (piece_ / 2 + align_ - 1) / align_ * align_;
    }
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kLeast{250}, kMost{1000};

  const int64_t align_;
  int64_t piece_ = std::numeric_limits<int64_t>::max();
  Clock::time_point began_;
};

// The first exception of a loop's threads. No exception may leave an OpenMP
// region: each thread keeps its own here, which ends the others at their next
// look, and the thread that began the loop throws it again after the join.
// Thread-safety: any thread of the loop, where nothing else is said.
class LoopException {
 public:
  // In a catch block.
  void Keep() noexcept {
    if (!kept_.exchange(true)) exception_ = std::current_exception();
  }
  bool kept() const { return kept_.load(std::memory_order_relaxed); }
  // After the join, which makes exception_ visible; one thread.
  void Rethrow() const {
    if (ABSL_PREDICT_FALSE(kept())) std::rethrow_exception(exception_);
  }

 private:
  std::atomic<bool> kept_{false};
  std::exception_ptr exception_;
};

// The failure of the loop's first item that failed, in the items' order.
// Thread-safety: Note: any thread; Take: after the loop.
class FirstFailure {
 public:
  void Note(int64_t item, absl::Status status) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok() && item_ <= item) return;
    item_ = item;
    status_ = std::move(status);
  }
  // OK if there was none.
  absl::Status Take() { return std::move(status_); }

 private:
  std::mutex mutex_;
  int64_t item_ = 0;
  absl::Status status_;
};

// One thread's part of a ParallelFor. `others`: what ends it early; may be
// null.
template <typename F>
inline void RunPart(const KernelContext& context, int64_t begin, int64_t end,
                    int64_t grain, int64_t align, const LoopException* others,
                    F& fn) {
  Pace pace(context, end - begin, grain, align);
  while (true) {
    const int64_t next = pace.End(begin, end);
    fn(begin, next);
    if (next == end) return;
    begin = next;
    if (!pace.Next(context)) return;
    if (others != nullptr && others->kept()) return;
  }
}

// Calls fn(begin, end) for disjoint ranges that cover [0, n), inline when n is
// at most `grain` or one thread is granted. A range starts at a multiple of
// `align`, so that a loop that treats the elements after the last full vector
// differently does so at the same places for every split. A thread may be given
// several ranges one after the other.
//
// Once the kernel is to stop, ranges are left out, all of them in loops that
// begin later: what a loop computed may then be anything. Who goes on with it
// outside of such loops, and must be able to trust it (as an index, a size),
// asks context.Stopped() first. An exception of fn does the same to the rest of
// this loop, and leaves it.
template <typename F>
inline void ParallelFor(const KernelContext& context, int64_t n, int64_t grain,
                        F&& fn, int64_t align = 1) {
  if (n <= 0) return;
  if (context.stop != nullptr && ABSL_PREDICT_FALSE(context.stop->stopped())) {
    return;
  }
#if !defined(__SANITIZE_THREAD__)
  // Not under ThreadSanitizer: libgomp is not instrumented, so that its
  // barriers are invisible and every loop would be reported as a race.
  if (n > grain && context.num_threads > 1) {
    const int64_t parts =
        std::min<int64_t>(context.num_threads, (n + grain - 1) / grain);
    LoopException exception;
#pragma omp parallel num_threads(static_cast <int>(parts))
    {
      // The runtime may give fewer threads than asked for.
      const int64_t count = omp_get_num_threads();
      const int64_t chunk =
          ((n + count - 1) / count + align - 1) / align * align;
      const int64_t begin = omp_get_thread_num() * chunk;
      if (begin < n) {
        try {
          RunPart(context, begin, std::min(n, begin + chunk), grain, align,
                  &exception, fn);
        } catch (...) {
          exception.Keep();
        }
      }
    }
    exception.Rethrow();
    return;
  }
#endif
  RunPart(context, 0, n, grain, align, nullptr, fn);
}

// Calls fn(begin, end) for ranges that cover [0, n) in order, all on the
// calling thread and of at most `piece` each: what takes about a millisecond.
// False once the kernel is to stop; the rest is then left out.
template <typename F>
inline bool SerialFor(const KernelContext& context, int64_t n, int64_t piece,
                      F&& fn) {
  for (int64_t begin = 0; begin < n; begin += piece) {
    if (begin > 0 && context.Stopped()) return false;
    fn(begin, std::min(n, begin + piece));
  }
  return !context.Stopped();
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_PARALLEL_H_
