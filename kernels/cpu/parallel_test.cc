// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/test_context.h"
#include "kernels/kernel_table.h"
#include "ops/check.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

void Work(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// The ranges in their order.
Ranges RangesOf(const KernelContext& context, int64_t n, int64_t grain,
                int64_t align, std::chrono::microseconds each) {
  std::mutex mutex;
  Ranges ranges;
  ParallelFor(
      context, n, grain,
      [&](int64_t begin, int64_t end) {
        {
          std::lock_guard<std::mutex> lock(mutex);
          ranges.emplace_back(begin, end);
        }
        Work(each);
      },
      align);
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

class ParallelForTest : public testing::TestWithParam<int> {
 protected:
  size_t threads() const { return static_cast<size_t>(GetParam()); }
  StopSignal stop;
  TestContext context{GetParam()};
};

TEST_P(ParallelForTest, AShortRangeIsOnePieceForEachThread) {
  context.stop = &stop;
  stop.Begin(1);
  for (const int64_t n : {1, 1000, 65536}) {
    EXPECT_LE(RangesOf(context, n, 32768, 256, {}).size(), threads());
  }
}

TEST_P(ParallelForTest, PiecesCoverALongRangeAndBeginAtMultiples) {
  context.stop = &stop;
  stop.Begin(1);
  for (const int64_t n : {int64_t{1000001}, int64_t{1} << 22}) {
    for (const int64_t align : {1, 96, 1024}) {
      const Ranges ranges =
          RangesOf(context, n, 1000, align, std::chrono::microseconds(20));
      EXPECT_GT(ranges.size(), 2 * threads());
      int64_t at = 0;
      for (const auto& [begin, end] : ranges) {
        EXPECT_EQ(begin, at);
        EXPECT_EQ(begin % align, 0);
        EXPECT_LT(begin, end);
        at = end;
      }
      EXPECT_EQ(at, n);
    }
  }
}

TEST_P(ParallelForTest, WithoutASignalThereAreNoPieces) {
  EXPECT_LE(RangesOf(context, 1 << 20, 16, 1, {}).size(), threads());
}

TEST_P(ParallelForTest, AStopLeavesTheRestOut) {
  context.stop = &stop;
  stop.Begin(7);
  constexpr int64_t kAll = int64_t{1} << 40;  // days
  std::atomic<int64_t> done{0};
  std::atomic<int> calls{0};
  std::thread stopper([&] {
    while (done.load() == 0) std::this_thread::yield();
    stop.StopOne(7, absl::AbortedError("enough"));
  });
  const auto work = [&](int64_t begin, int64_t end) {
    calls.fetch_add(1);
    Work(std::chrono::microseconds(std::min<int64_t>(end - begin, 5000)));
    done.fetch_add(end - begin);
  };
  ParallelFor(context, kAll, 1, work);
  stopper.join();
  EXPECT_GT(done.load(), 0);
  EXPECT_LT(done.load(), kAll);
  // Loops of the same op that come later are left out, short ones too.
  const int before = calls.load();
  ParallelFor(context, 1, 100, work);
  ParallelFor(context, 100000, 100, work);
  EXPECT_EQ(calls.load(), before);
  // The next op's are not.
  stop.Begin(8);
  ParallelFor(context, 1, 100, work);
  EXPECT_EQ(calls.load(), before + 1);
}

TEST_P(ParallelForTest, WhatAPieceThrowsReachesTheCaller) {
  // From the first range, and from the last, which another thread has.
  for (const int64_t at : {int64_t{0}, int64_t{999}}) {
    const auto work = [at](int64_t begin, int64_t end) {
      if (begin <= at && at < end) throw std::bad_alloc();
    };
    EXPECT_THROW(ParallelFor(context, 1000, 10, work), std::bad_alloc) << at;
  }
  // All throw: one of them is told.
  const auto check = [](int64_t, int64_t) { HF_CHECK(2 * 2 == 5); };
  try {
    ParallelFor(context, 1000, 10, check);
    FAIL() << "nothing was thrown";
  } catch (const CheckFailure& failure) {
    EXPECT_NE(std::string(failure.what()).find("2 * 2 == 5"), std::string::npos)
        << failure.what();
  }
  // The threads are as before.
  std::atomic<int64_t> done{0};
  ParallelFor(context, 1000, 10,
              [&](int64_t begin, int64_t end) { done.fetch_add(end - begin); });
  EXPECT_EQ(done.load(), 1000);
}

TEST_P(ParallelForTest, AnExceptionEndsTheOtherPiecesEarly) {
  context.stop = &stop;
  stop.Begin(1);
  constexpr int64_t kAll = int64_t{1} << 40;  // days
  std::atomic<int64_t> done{0};
  const auto work = [&](int64_t begin, int64_t end) {
    if (begin == 0) throw std::bad_alloc();
    Work(std::chrono::microseconds(std::min<int64_t>(end - begin, 5000)));
    done.fetch_add(end - begin);
  };
  EXPECT_THROW(ParallelFor(context, kAll, 1, work), std::bad_alloc);
  EXPECT_LT(done.load(), kAll / 2);
}

TEST_P(ParallelForTest, AKernelsBoundsAreChecked) {
  // A kernel of the library itself, with an operand too few.
  const OpSchema& add = GetOp(OpId::add);
  const Attrs attrs(&add);
  const TestTensor x(DType::kFloat32, {2}, {1, 2});
  EXPECT_THROW(
      {
        const absl::Status status =
            RunKernel(CpuKernels().kernels[static_cast<int>(OpId::add)],
                      context, attrs, {x}, {x});
        ADD_FAILURE() << status;
      },
      CheckFailure);
}

TEST_P(ParallelForTest, SerialForGoesInOrderAndLooksBetween) {
  context.stop = &stop;
  stop.Begin(1);
  Ranges ranges;
  EXPECT_TRUE(SerialFor(context, 10, 4, [&](int64_t begin, int64_t end) {
    ranges.emplace_back(begin, end);
  }));
  EXPECT_EQ(ranges, (Ranges{{0, 4}, {4, 8}, {8, 10}}));
  ranges.clear();
  EXPECT_FALSE(SerialFor(context, 10, 4, [&](int64_t begin, int64_t end) {
    ranges.emplace_back(begin, end);
    if (begin == 4) stop.StopOne(1, absl::AbortedError("enough"));
  }));
  EXPECT_EQ(ranges, (Ranges{{0, 4}, {4, 8}}));
}

TEST(FirstFailureTest, ItIsTheFirstItemsWhoeverComesFirst) {
  EXPECT_TRUE(FirstFailure().Take().ok());
  FirstFailure failure;
  failure.Note(7, absl::InternalError("seven"));
  failure.Note(3, absl::InternalError("three"));
  failure.Note(5, absl::InternalError("five"));
  EXPECT_EQ(failure.Take().message(), "three");
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelForTest, testing::Values(1, 2, 4));

class CountingAttendant : public Attendant {
 public:
  void Ask() { waits_.store(true); }
  void Attend() override {
    waits_.store(false);
    ++turns;
  }
  int turns = 0;
};

TEST(StopSignalTest, ARequestMeansTheOpItNames) {
  StopSignal stop;
  EXPECT_FALSE(stop.stopped());
  stop.Begin(3);
  stop.StopOne(2, absl::AbortedError("late"));  // that one has ended
  EXPECT_FALSE(stop.stopped());
  stop.StopOne(3, absl::AbortedError("first"));
  EXPECT_TRUE(stop.stopped());
  EXPECT_EQ(stop.why().message(), "first");
  // What is to stop does not begin again, whatever comes late.
  stop.StopOne(2, absl::AbortedError("late"));
  stop.StopOne(3, absl::AbortedError("second"));
  EXPECT_TRUE(stop.stopped());
  EXPECT_EQ(stop.why().message(), "first");
  stop.Begin(4);
  EXPECT_FALSE(stop.stopped());
}

TEST(StopSignalTest, WhatIsQueuedStopsByItsNumber) {
  StopSignal stop;
  stop.Begin(3);
  stop.StopThrough(5, absl::CancelledError("cancelled"));
  for (const uint64_t op : {3, 4, 5}) {
    stop.Begin(op);
    EXPECT_TRUE(stop.stopped()) << op;
  }
  stop.StopThrough(4, absl::AbortedError("less"));
  EXPECT_EQ(stop.why().message(), "cancelled");
  stop.Begin(6);
  EXPECT_FALSE(stop.stopped());
  stop.Begin(StopSignal::kNone);
  EXPECT_FALSE(stop.stopped());
}

TEST(StopSignalTest, AnotherClientsNumbersAreItsOwn) {
  StopSignal stop;
  stop.Begin(9);
  stop.StopThrough(9, absl::CancelledError("cancelled"));
  stop.StopOne(1, absl::AbortedError("late"));
  stop.Reset();
  stop.Begin(1);
  EXPECT_FALSE(stop.stopped());
  stop.StopThrough(StopSignal::kNone, absl::AbortedError("the end"));
  stop.Reset();
  EXPECT_TRUE(stop.stopped());
  stop.Begin(StopSignal::kNone);
  EXPECT_TRUE(stop.stopped());
}

TEST(StopSignalTest, ALookGivesTheAttendantItsTurn) {
  StopSignal stop;
  CountingAttendant attendant;
  stop.set_attendant(&attendant);
  stop.Begin(1);
  stop.Look();
  EXPECT_EQ(attendant.turns, 0);
  attendant.Ask();
  EXPECT_FALSE(stop.Look());
  stop.Look();
  EXPECT_EQ(attendant.turns, 1);
}

}  // namespace
}  // namespace holdfast::cpu
