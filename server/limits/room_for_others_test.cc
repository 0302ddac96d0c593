// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/limits/room_for_others.h"

#include <string>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

uint64_t TakeAll(UserShares* shares, const std::string& user) {
  uint64_t taken = 0;
  while (shares->Take(user)) ++taken;
  return taken;
}

TEST(RoomForOthersTest, EachLeavesATenthOfWhatWasLeft) {
  UserShares shares(10000);
  EXPECT_EQ(TakeAll(&shares, "first"), 9000u);
  EXPECT_EQ(TakeAll(&shares, "second"), 900u);
  EXPECT_EQ(TakeAll(&shares, "third"), 90u);
  EXPECT_TRUE(shares.Take("fourth"));
  EXPECT_FALSE(shares.Take("first"));
}

TEST(RoomForOthersTest, AFewAreNotWithheld) {
  for (const uint64_t most : {1, 2, 4, 9}) {
    UserShares shares(most);
    EXPECT_GE(TakeAll(&shares, "only"), most - most / 10) << most;
  }
}

TEST(RoomForOthersTest, SeveralAtOnceAreAllOrNone) {
  UserShares shares(100);
  EXPECT_TRUE(shares.Take("first", 90));
  EXPECT_FALSE(shares.Take("first", 1));
  EXPECT_FALSE(shares.Take("second", 11));
  EXPECT_EQ(shares.of("second"), 0u);
  EXPECT_TRUE(shares.Take("second", 9));
  shares.Return("first", 40);
  EXPECT_EQ(shares.of("first"), 50u);
  EXPECT_TRUE(shares.Take("second", 30));
}

}  // namespace
}  // namespace holdfast
