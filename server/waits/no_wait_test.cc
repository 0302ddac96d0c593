// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/waits/no_wait.h"

#include <atomic>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "server/waits/ranked_mutex.h"
#include "server/waits/slow_calls.h"

namespace holdfast {
namespace {

class Direct final : public Aside {
 public:
  void Run(const std::function<void()>& call) override { call(); }
  void Post(std::function<void()> call) override { call(); }
  void Finish() override {}
};

using Guard = std::lock_guard<RankedMutex>;

class NoWaitTest : public testing::Test {
 protected:
  void SetUp() override {
    // Other threads may be there.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (waits::check != waits::Check::kAbort) {
      GTEST_SKIP() << "HOLDFAST_CHECK_WAITS is not abort";
    }
  }
  Direct aside_;
  RankedMutex disk_{LockRank::kDisk};  // held across waits
  RankedMutex registry_{LockRank::kRegistry};
  RankedMutex ledger_{LockRank::kLedger};
};

TEST_F(NoWaitTest, WhatMayWaitEndsTheProcess) {
  MayWait("fsync");
  const NoWait no_wait(&aside_);
  {
    const NoWait lifted(nullptr);
    MayWait("fsync");
  }
  EXPECT_DEATH(MayWait("fsync"),
               "must not wait came to what may: fsync; stack");
}

TEST_F(NoWaitTest, NobodyWaitsWithALockThatOthersMustNotWaitFor) {
  {
    const Guard lock(disk_);
    MayWait("fsync");
  }
  const Guard lock(ledger_);
  EXPECT_DEATH(MayWait("fsync"), "\\(fsync\\) with the lock 'kLedger'");
}

TEST_F(NoWaitTest, ALockThatIsHeldAcrossWaitsIsNotTaken) {
  const NoWait no_wait(&aside_);
  { const Guard lock(ledger_); }
  EXPECT_DEATH(const Guard lock(disk_), "took the lock 'kDisk', which is held");
}

TEST_F(NoWaitTest, LocksAreTakenInTheirOrder) {
  {
    const Guard first(registry_);
    const Guard second(ledger_);
  }
  const Guard first(ledger_);
  EXPECT_DEATH(const Guard second(registry_),
               "'kRegistry' was taken by a thread that has 'kLedger'");
  RankedMutex other(LockRank::kLedger);
  EXPECT_DEATH(const Guard second(other),
               "'kLedger' was taken by a thread that has 'kLedger'");
}

TEST_F(NoWaitTest, ConditionsAreWaits) {
  RankedCondition condition;
  RankedLock lock(ledger_);
  condition.wait(lock, [] { return true; });
  EXPECT_DEATH(
      {
        const NoWait no_wait(&aside_);
        condition.wait(lock, [] { return true; });
      },
      "must not wait waits for another");
  lock.unlock();
  const Guard held(registry_);
  lock.lock();
  EXPECT_DEATH(condition.wait(lock, [] { return true; }),
               "waits for another with the lock 'kRegistry'");
}

TEST(SlowCallsTest, CallsAreMadeInOrderWhileTheCallerLooks) {
  SlowCalls calls;
  std::atomic<bool> looked{false};
  std::string order;
  calls.Post([&] {
    while (!looked.load()) std::this_thread::yield();
    order += "a";
  });
  calls.Run([&] { order += "b"; }, [&] { looked.store(true); });
  EXPECT_EQ(order, "ab");
}

TEST(SlowCallsTest, WhatACallThrowsReachesItsCaller) {
  SlowCalls calls;
  EXPECT_THROW(calls.Run([] { throw std::bad_alloc(); }, [] {}),
               std::bad_alloc);
  bool done = false;
  calls.Run([&] { done = true; }, [] {});
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace holdfast
