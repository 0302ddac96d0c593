// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/watchdog.h"

#include <unistd.h>

#include <atomic>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/log/log.h"
#include "spdlog/sinks/ostream_sink.h"

namespace holdfast {

// Outside of the unnamed namespace, for the stack shows its name.
ABSL_ATTRIBUTE_NOINLINE void WaitForWhatNeverComes(
    const std::atomic<bool>& come) {
  while (!come.load()) usleep(1000);
}

namespace {

constexpr absl::Duration kLate = absl::Milliseconds(200);
constexpr absl::Duration kAtMost = absl::Seconds(60);

class WatchdogTest : public testing::Test {
 protected:
  WatchdogTest() {
    SetLogSink("text", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_))
        .IgnoreError();
    worker_.Start();
    Watchdog::Options options;
    options.late_after = kLate;
    watchdog_ = std::make_unique<Watchdog>(&worker_, options);
  }
  absl::Status Health() const {
    std::string busy;
    return watchdog_->health(&busy);
  }
  // Whether it says so before the machine's patience ends.
  template <typename Condition>
  static bool Await(const Condition& condition) {
    const absl::Time until = absl::Now() + kAtMost;
    while (!condition()) {
      if (absl::Now() > until) return false;
      absl::SleepFor(absl::Milliseconds(5));
    }
    return true;
  }

  std::ostringstream log_;
  Worker worker_{[] {
    Worker::Options options;
    options.tick = absl::Milliseconds(20);
    return options;
  }()};
  std::unique_ptr<Watchdog> watchdog_;
};

TEST_F(WatchdogTest, AStuckWorkerIsToldWithItsStack) {
  std::atomic<bool> come{false};
  worker_.Post([&] { WaitForWhatNeverComes(come); });
  EXPECT_TRUE(Await([&] { return !Health().ok(); }));
  EXPECT_NE(Health().message().find("made no progress"), std::string::npos);
  EXPECT_EQ(watchdog_->times_stuck(), 1);
  EXPECT_GE(watchdog_->seconds_late(), absl::ToDoubleSeconds(kLate));
  come.store(true);
  EXPECT_TRUE(Await([&] { return Health().ok(); }));
  EXPECT_EQ(watchdog_->seconds_late(), 0);
  EXPECT_EQ(watchdog_->times_stuck(), 1);
  watchdog_.reset();
  const std::string text = log_.str();
  EXPECT_NE(text.find("the worker has made no progress"), text.npos) << text;
  EXPECT_NE(text.find("WaitForWhatNeverComes"), text.npos) << text;
  EXPECT_NE(text.find("holdfast::Worker::RunPosted"), text.npos) << text;
  EXPECT_NE(text.find("the worker goes on"), text.npos) << text;
}

// A loaded machine may well hold it up for some time, but not without end.
TEST_F(WatchdogTest, AnIdleWorkerIsNotLate) {
  const uint64_t turns = worker_.turns();
  EXPECT_TRUE(Await([&] { return worker_.turns() > turns + 20; }));
  EXPECT_TRUE(Await([&] { return Health().ok(); }));
}

}  // namespace
}  // namespace holdfast
