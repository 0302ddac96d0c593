// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/integer_bounds.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

IntegerBounds BoundsOf(const std::vector<int64_t>& elements) {
  return *BoundsOfElements(DType::kInt64, elements.data(), elements.size());
}

// Whether the elements are as the bounds say.
bool Hold(const IntegerBounds& bounds, const std::vector<int64_t>& elements) {
  for (const int64_t element : elements) {
    if (element != bounds.least && element != bounds.most &&
        (element < bounds.second || element > bounds.before)) {
      return false;
    }
  }
  return true;
}

TEST(IntegerBoundsTest, TellsTheEndsApart) {
  EXPECT_EQ(BoundsOf({3, -100, 7, -100, 0}), (IntegerBounds{-100, 0, 3, 7}));
  EXPECT_EQ(BoundsOf({5, 5, 5}), (IntegerBounds{5, 5, 5, 5}));
  EXPECT_FALSE(BoundsOfElements(DType::kInt64, nullptr, 0));
  const std::vector<int32_t> narrow = {4, -2, 9};
  EXPECT_EQ(*BoundsOfElements(DType::kInt32, narrow.data(), 3),
            (IntegerBounds{-2, 4, 4, 9}));
  EXPECT_FALSE(BoundsOfElements(DType::kFloat32, narrow.data(), 3));
}

TEST(IntegerBoundsTest, WithinButLeavesOneValueAside) {
  const IntegerBounds targets = BoundsOf({3, -100, 9});
  EXPECT_FALSE(targets.Within(0, 9));
  EXPECT_TRUE(targets.WithinBut(-100, 0, 9));
  EXPECT_FALSE(targets.WithinBut(-100, 0, 8));
  EXPECT_FALSE(targets.WithinBut(-1, 0, 9));
  EXPECT_TRUE(BoundsOf({0, 255, 3, 9}).WithinBut(255, 0, 9));
  EXPECT_FALSE(BoundsOf({0, 255, 3, 10}).WithinBut(255, 0, 9));
  EXPECT_TRUE(BoundsOf({255, 9}).WithinBut(255, 0, 9));
  // In the middle nobody looks for it.
  EXPECT_FALSE(BoundsOf({-1, -2, 5}).WithinBut(-1, 0, 9));
  EXPECT_TRUE(BoundsOf({-100}).WithinBut(-100, 0, 9));
  EXPECT_FALSE(BoundsOf({-100, -3, 4}).WithinBut(-100, 0, 9));
  // Nothing is known of the others.
  EXPECT_FALSE(IntegerBounds::Of(-100, 9).WithinBut(-100, 0, 9));
}

TEST(IntegerBoundsTest, NonZero) {
  EXPECT_TRUE(BoundsOf({1, 4}).NonZero());
  EXPECT_TRUE(BoundsOf({-4, -1}).NonZero());
  EXPECT_TRUE(BoundsOf({-4, 3}).NonZero());
  EXPECT_FALSE(BoundsOf({-4, 0, 3}).NonZero());
  EXPECT_TRUE(BoundsOf({-4, -1, 3}).NonZero());
  EXPECT_FALSE(BoundsOf({-4, -1, 2, 3}).NonZero());
  EXPECT_FALSE(IntegerBounds::Of(-4, 3).NonZero());
}

TEST(IntegerBoundsTest, TypesBoundWhatTheyHold) {
  EXPECT_EQ(BoundsOfType(DType::kBool), IntegerBounds::Of(0, 1));
  EXPECT_EQ(BoundsOfType(DType::kInt8), IntegerBounds::Of(-128, 127));
  EXPECT_FALSE(BoundsOfType(DType::kInt64));
  EXPECT_FALSE(BoundsOfType(DType::kFloat32));
  EXPECT_TRUE(Fit(IntegerBounds::Of(0, 255), DType::kUInt8));
  EXPECT_FALSE(Fit(IntegerBounds::Of(-1, 255), DType::kUInt8));
  EXPECT_FALSE(Fit(IntegerBounds::Of(0, int64_t{1} << 31), DType::kInt32));
}

TEST(IntegerBoundsTest, AUnionHoldsForTheElementsOfBoth) {
  std::mt19937 random(0);
  for (int round = 0; round < 20000; ++round) {
    std::vector<int64_t> all[2];
    for (auto& elements : all) {
      const size_t count = 1 + random() % 4;
      for (size_t i = 0; i < count; ++i) {
        elements.push_back(static_cast<int64_t>(random() % 7) - 3);
      }
    }
    IntegerBounds a = BoundsOf(all[0]), b = BoundsOf(all[1]);
    // Half of the time the others are not known.
    if (random() % 2) a = IntegerBounds::Of(a.least, a.most);
    const IntegerBounds both = Union(a, b);
    ASSERT_TRUE(Hold(both, all[0]) && Hold(both, all[1]))
        << both.least << " " << both.second << " " << both.most;
    // No looser than it must be.
    ASSERT_TRUE(both.least == std::min(a.least, b.least) &&
                both.most == std::max(a.most, b.most));
    ASSERT_TRUE(both.second >= both.least && both.before <= both.most);
    ASSERT_EQ(both, Union(b, a));
  }
}

}  // namespace
}  // namespace holdfast
