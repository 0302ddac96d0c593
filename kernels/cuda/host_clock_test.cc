// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/host_clock.h"

#include <cmath>

#include "gtest/gtest.h"

namespace holdfast::cuda {
namespace {

constexpr int64_t kUs = 1000;
constexpr int64_t kSecond = 1'000'000'000;

TEST(HostClockTest, AnEarlyLookSaysMore) {
  HostClock clock;
  // Seen 5 ms late, then 2 us.
  clock.Narrow(0, 100 * kSecond, 100 * kSecond + 5000 * kUs);
  EXPECT_EQ(clock.ToHost(1), 101 * kSecond + 5000 * kUs);
  clock.Narrow(2, 101 * kSecond, 102 * kSecond + 2 * kUs);
  EXPECT_EQ(clock.ToHost(2), 102 * kSecond + 2 * kUs);
  // A late one changes nothing.
  clock.Narrow(3, 101 * kSecond, 103 * kSecond + 900 * kUs);
  EXPECT_EQ(clock.ToHost(3), 103 * kSecond + 2 * kUs);
  // Nothing passes before it was recorded.
  clock.Narrow(4, 104 * kSecond + 7 * kUs, 104 * kSecond + 9 * kUs);
  EXPECT_EQ(clock.ToHost(4), 104 * kSecond + 7 * kUs);
}

// For a day, whichever is faster: within the time from record to look.
TEST(HostClockTest, DriftDoesNotAddUp) {
  for (const double drift : {-50e-6, 50e-6}) {
    HostClock clock;
    for (int second = 1; second < 86400; ++second) {
      const double device = second * (1 + drift);
      const int64_t host = second * kSecond;
      clock.Narrow(device, host - 60 * kUs, host + 60 * kUs);
      ASSERT_LE(std::abs(clock.ToHost(device) - host), 61 * kUs);
    }
  }
}

}  // namespace
}  // namespace holdfast::cuda
