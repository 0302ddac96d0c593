// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows that groups of threads hold, one rank after the other.
#include "kernels/cuda/norm_rows.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace holdfast::cuda {
namespace {

template <int kWidth>
void ExpectEachElementOnce(int n, int size) {
  struct alignas(16) Block {
    float x[4];
  };
  std::vector<Block> blocks(n / 4 + 1);
  float* const row = blocks[0].x;
  for (int i = 0; i < n; ++i) row[i] = static_cast<float>(i + 1);
  std::vector<int> seen(n, 0);
  double sum = 0;
  for (int rank = 0; rank < size; ++rank) {
    const HeldRow<float, kWidth, kHeld<float>> held(row, n, rank, size);
    held.ForEachPack([&](int p, int i) {
      for (int e = 0; e < kWidth; ++e) {
        ASSERT_LT(i + e, n);
        ++seen[i + e];
        ASSERT_EQ(held.v[p][e], row[i + e]);
      }
    });
    sum += held.Sum([](float x) { return x; });
  }
  EXPECT_EQ(seen, std::vector<int>(n, 1));
  EXPECT_NEAR(sum, 0.5 * n * (n + 1), 1e-6 * n * n);
}

TEST(HeldRowTest, RanksHoldEachElementOnce) {
  for (int n : {0, 1, 3, 16, 17, 1023, 1024, 1025, 4097, 8191, 8192}) {
    const int size = HeldGroup<float>(n);
    ASSERT_NE(size, 0) << n;
    ExpectEachElementOnce<1>(n, size);
    if (n % 4 == 0) ExpectEachElementOnce<4>(n, size);
  }
}

TEST(HeldGroupTest, RowsThatRegistersDoNotHoldHaveNone) {
  EXPECT_EQ(HeldGroup<float>(8193), 0);
  EXPECT_EQ(HeldGroup<double>(4096), kBlockThreads);
  EXPECT_EQ(HeldGroup<double>(4097), 0);
  EXPECT_EQ(HeldGroup<float>(int64_t{1} << 40), 0);
}

GroupLayout LayoutOf(int64_t rows, int64_t groups, int64_t channels,
                     int64_t inner) {
  GroupLayout l;
  l.rows = rows;
  l.groups = groups;
  l.channels = channels;
  l.inner = inner;
  return l;
}

TEST(RowFactorsTest, EachElementHasItsChannels) {
  alignas(16) double table[12];
  for (int i = 0; i < 12; ++i) table[i] = i;
  const GroupLayout spread = LayoutOf(6, 3, 4, 5);
  const RowFactors<double, uint32_t, false> factors(spread);
  for (int64_t r = 0; r < spread.rows; ++r) {
    for (uint32_t i = 0; i < spread.row(); ++i) {
      double one[1];
      factors.Load(table, 1.0, factors.Channel(r), i, one);
      EXPECT_EQ(one[0], static_cast<double>(r % 3 * 4 + i / 5));
    }
  }
  const GroupLayout adjacent = LayoutOf(6, 3, 4, 1);
  const RowFactors<double, int64_t, true> along(adjacent);
  for (int64_t r = 0; r < adjacent.rows; ++r) {
    double two[2];
    along.Load(table, 1.0, along.Channel(r), 2, two);
    EXPECT_EQ(two[0], static_cast<double>(r % 3 * 4 + 2));
    EXPECT_EQ(two[1], two[0] + 1);
    along.Load<2>(nullptr, 7.0, along.Channel(r), 2, two);
    EXPECT_EQ(two[0], 7);
    EXPECT_EQ(two[1], 7);
  }
}

TEST(RowFactorsTest, RowsMayBeMoreThan32BitsCount) {
  const GroupLayout l = LayoutOf(int64_t{3} << 32, 3, 4, 1);
  const RowFactors<float, uint32_t, true> factors(l);
  const int64_t row = (int64_t{3} << 31) + 2;
  EXPECT_EQ(factors.Channel(row), row % 3 * 4);
}

TEST(RowPacksFitTest, TablesCountWhereTheyLieAlongRows) {
  alignas(16) float x[8];
  EXPECT_TRUE(RowPacksFit<float>(LayoutOf(2, 1, 8, 1), {x}, {x, nullptr}));
  EXPECT_FALSE(RowPacksFit<float>(LayoutOf(2, 1, 8, 1), {x}, {x + 1}));
  EXPECT_FALSE(RowPacksFit<float>(LayoutOf(2, 1, 6, 1), {x}, {x}));
  EXPECT_TRUE(RowPacksFit<float>(LayoutOf(2, 2, 3, 4), {x}, {x + 1}));
  EXPECT_FALSE(RowPacksFit<float>(LayoutOf(2, 2, 4, 3), {x}, {x}));
}

}  // namespace
}  // namespace holdfast::cuda
