// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/steady_time.h"

#include <chrono>
#include <type_traits>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

// One clock's moment where the other's belongs must not compile.
using SystemTime = std::chrono::system_clock::time_point;
static_assert(!std::is_convertible_v<SteadyTime, absl::Time>);
static_assert(!std::is_convertible_v<absl::Time, SteadyTime>);
static_assert(!std::is_constructible_v<SteadyTime, absl::Time>);
static_assert(!std::is_constructible_v<absl::Time, SteadyTime>);
static_assert(!std::is_convertible_v<SteadyTime, SystemTime>);
static_assert(
    !std::is_convertible_v<decltype(SteadyTime().ToChrono()), SystemTime>);
static_assert(std::is_same_v<decltype(SteadyTime().ToChrono())::clock,
                             std::chrono::steady_clock>);

TEST(SteadyTimeTest, IsTheSteadyClock) {
  const auto before = std::chrono::steady_clock::now();
  const auto now = SteadyNow().ToChrono();
  EXPECT_LE(before, now);
  EXPECT_LE(now, std::chrono::steady_clock::now());
}

TEST(SteadyTimeTest, CountsAsTimeDoes) {
  const SteadyTime t = SteadyTime::FromMicros(7);
  EXPECT_EQ(t.ToMicros(), 7);
  EXPECT_EQ(t + absl::Microseconds(3) - t, absl::Microseconds(3));
  EXPECT_EQ(t - absl::Microseconds(7), SteadyTime());
  EXPECT_LT(t, t + absl::Nanoseconds(1));
  EXPECT_NE(t, SteadyTime());
}

TEST(SteadyTimeTest, SaturatesAtBothEnds) {
  EXPECT_EQ(SteadyNow() + absl::InfiniteDuration(), SteadyTime::Future());
  EXPECT_EQ(SteadyTime::Future() - absl::Hours(1), SteadyTime::Future());
  EXPECT_EQ(SteadyTime::Past() + absl::Hours(1), SteadyTime::Past());
  EXPECT_EQ(SteadyTime::Future() - SteadyNow(), absl::InfiniteDuration());
  EXPECT_EQ(SteadyTime::Future().ToMicros(), INT64_MAX);
  EXPECT_GT(SteadyTime::Future().ToChrono(), SteadyNow().ToChrono());
  EXPECT_LT(SteadyTime::Past().ToChrono(), SteadyNow().ToChrono());
}

}  // namespace
}  // namespace holdfast
