// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/op_trail.h"

#include "gtest/gtest.h"

namespace holdfast::cuda {
namespace {

TEST(OpTrailTest, NamesWhatFollowedTheLastGoodPoint) {
  OpTrail trail;
  EXPECT_EQ(trail.Since(0), "");
  trail.Note("matmul");
  trail.Note("add");
  EXPECT_EQ(trail.Since(0), "matmul, add");
  EXPECT_EQ(trail.Since(1), "add");
  EXPECT_EQ(trail.Since(trail.count()), "");
}

TEST(OpTrailTest, KeepsTheLastSixteen) {
  OpTrail trail;
  trail.Note("first");
  for (int i = 0; i < 15; ++i) trail.Note("exp");
  EXPECT_EQ(trail.Since(0).substr(0, 10), "first, exp");
  trail.Note("last");
  const std::string text = trail.Since(0);
  EXPECT_EQ(text.substr(0, 8), "..., exp");
  EXPECT_EQ(text.substr(text.size() - 9), "exp, last");
  EXPECT_EQ(text.find("first"), text.npos);
}

}  // namespace
}  // namespace holdfast::cuda
