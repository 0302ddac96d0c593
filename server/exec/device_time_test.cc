// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/device_time.h"

#include "gtest/gtest.h"
#include "proto/steady_time.h"

namespace holdfast {
namespace {

SteadyTime At(double seconds) {
  return SteadyTime() + absl::Seconds(1000 + seconds);
}

TEST(DeviceTimeTest, OneSessionHasAllOfIt) {
  DeviceTime time;
  EXPECT_NEAR(time.PartOf(At(0), At(2)), 2, 1e-6);
  EXPECT_NEAR(time.PartOf(At(2), At(3)), 1, 1e-6);
  // Nobody's: the device had nothing to do.
  EXPECT_NEAR(time.PartOf(At(5), At(6)), 1, 1e-6);
}

// A kernel of 1 s waits for one of 10 s each time.
TEST(DeviceTimeTest, WhoWaitsForAnotherDoesNotPayForThat) {
  DeviceTime time;
  double few = 0, many = 0;
  for (int i = 0; i < 5; ++i) {
    many += time.PartOf(At(11 * i), At(11 * i + 10));
    few += time.PartOf(At(11 * i), At(11 * i + 11));
  }
  EXPECT_NEAR(few, 5, 1e-6);
  EXPECT_NEAR(many, 50, 1e-6);
}

TEST(DeviceTimeTest, AllPartsTogetherAreTheTimeWithWork) {
  DeviceTime time;
  double all = 0;
  for (int i = 1; i <= 100; ++i) {
    all += time.PartOf(At(0), At(0.1 * i));
    all += time.PartOf(At(0.1 * i - 3), At(0.1 * i + 0.03));
  }
  EXPECT_NEAR(all, 10.03, 1e-6);
}

TEST(DeviceTimeTest, WhatIsToldLateIsNotCountedTwice) {
  DeviceTime time;
  EXPECT_NEAR(time.PartOf(At(0), At(5)), 5, 1e-6);
  EXPECT_EQ(time.PartOf(At(1), At(3)), 0);
  EXPECT_NEAR(time.PartOf(At(3), At(6)), 1, 1e-6);
}

}  // namespace
}  // namespace holdfast
