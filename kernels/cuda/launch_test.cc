// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// How work is cut into blocks, groups, segments and chunks, and where elements
// are: arithmetic that needs no GPU.
#include "kernels/cuda/launch.h"

#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/fast_divisor.h"
#include "kernels/cuda/index_division.h"
#include "kernels/cuda/offsets.h"
#include "kernels/cuda/optim_lists.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/windows.h"
#include "kernels/optim_steps.h"

namespace holdfast::cuda {
namespace {

constexpr int64_t kHuge = int64_t{1} << 62;

TEST(GridBlocksTest, CoversWhatItCanAndStaysWithinTheGrid) {
  EXPECT_EQ(GridBlocks(1, 256), 1);
  EXPECT_EQ(GridBlocks(256, 256), 1);
  EXPECT_EQ(GridBlocks(257, 256), 2);
  EXPECT_EQ(GridBlocks(kHuge, 256), kMaxBlocks);
  EXPECT_LE(kMaxBlocks, std::numeric_limits<int32_t>::max());
}

TEST(GroupSizeTest, IsASizeThatReduceKnows) {
  for (int64_t count : {int64_t{0}, int64_t{16}, int64_t{17}, int64_t{1024},
                        int64_t{1025}, kHuge}) {
    const int size = GroupSize(count);
    EXPECT_TRUE(size == 1 || size == kWarp || size == kBlockThreads) << count;
    EXPECT_EQ(kBlockThreads % size, 0);
  }
}

TEST(PlanReduceTest, SegmentsCoverEachRow) {
  for (int64_t rows : {1, 7, 31, 32, 5000, 1 << 20}) {
    for (int64_t count : {0, 1, 63, 64, 1000, 4097, 1 << 24}) {
      for (bool columns : {false, true}) {
        const ReduceShape shape = PlanReduce(rows, count, columns);
        ASSERT_GE(shape.segments, 1);
        ASSERT_GE(shape.segments * shape.length, count);
        EXPECT_LE(shape.segments, 1024);
        EXPECT_EQ(kBlockThreads % shape.group, 0);
      }
    }
  }
}

// Around the powers of two, and in between, up to the largest there may be.
template <typename Word>
std::vector<Word> NumbersOf() {
  const Word most = ~Word{0} >> 1;
  std::vector<Word> numbers = {0, 1, 2, 3, most - 1, most};
  for (Word power = 4; power < most; power *= 2) {
    numbers.insert(numbers.end(), {power - 1, power, power + 1});
  }
  for (Word n = 1; n < 430; ++n) numbers.push_back(most / 431 * n + n);
  return numbers;
}

template <typename Word>
class FastDivisorTest : public testing::Test {};
using Words = testing::Types<uint32_t, uint64_t>;
TYPED_TEST_SUITE(FastDivisorTest, Words);

TYPED_TEST(FastDivisorTest, DividesAsTheProcessorDoes) {
  const std::vector<TypeParam> numbers = NumbersOf<TypeParam>();
  for (TypeParam divisor : numbers) {
    if (divisor == 0) continue;
    const FastDivisorOf<TypeParam> by(divisor);
    for (TypeParam n : numbers) {
      const auto parts = by.Split(n);
      ASSERT_EQ(parts.quotient, n / divisor) << n << " / " << divisor;
      ASSERT_EQ(parts.rest, n % divisor) << n << " / " << divisor;
    }
  }
}

template <typename Index>
class DivisionTest : public testing::Test {};
using Indices = testing::Types<uint32_t, int64_t>;
TYPED_TEST_SUITE(DivisionTest, Indices);

TYPED_TEST(DivisionTest, DividesAsTheProcessorDoes) {
  using Word = std::make_unsigned_t<TypeParam>;
  const std::vector<Word> numbers = NumbersOf<Word>();
  for (Word divisor : numbers) {
    const Division<TypeParam> by(static_cast<int64_t>(divisor));
    if (divisor == 0) continue;  // an empty tensor's: made, not used
    for (Word word : numbers) {
      const auto n = static_cast<TypeParam>(word);
      const auto d = static_cast<TypeParam>(divisor);
      const auto parts = by.Split(n);
      ASSERT_EQ(by.Divide(n), n / d) << n << " / " << d;
      ASSERT_EQ(parts.quotient, n / d) << n << " / " << d;
      ASSERT_EQ(parts.rest, n % d) << n << " % " << d;
    }
  }
}

// Dimension by dimension, from the last on.
int64_t PlaceByHand(const Dims& shape, const Dims& strides, int64_t position) {
  int64_t place = 0;
  for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d) {
    place += position % shape[d] * strides[d];
    position /= shape[d];
  }
  return place;
}

TEST(OffsetsTest, FindEveryElementOfTwoTensors) {
  const struct {
    Dims shape, a, b;
    int rank;  // after merging
  } cases[] = {
      {{}, {}, {}, 0},
      {{5}, {1}, {3}, 1},
      {{2, 3, 4}, {12, 4, 1}, {12, 4, 1}, 1},
      {{2, 3, 4}, {12, 4, 1}, {0, 0, 1}, 2},
      {{4, 1, 3}, {1, 99, 4}, {3, 0, 1}, 2},
      {{3, 2, 2, 2}, {-8, 4, 2, 1}, {1, 3, 6, 12}, 4},
  };
  for (const auto& c : cases) {
    Offsets<2> offsets = MakeOffsets<2>(c.shape, {c.a, c.b});
    EXPECT_EQ(offsets.rank, c.rank);
    EXPECT_EQ(offsets.numel, NumElements(c.shape));
    for (bool narrow : {true, false}) {
      if (narrow) {
        offsets.SetDivisors<uint32_t>();
      } else {
        offsets.SetDivisors<uint64_t>();
      }
      for (int64_t i = 0; i < offsets.numel; ++i) {
        int64_t at[2];
        offsets.At(i, at);
        EXPECT_EQ(at[0], PlaceByHand(c.shape, c.a, i));
        EXPECT_EQ(at[1], PlaceByHand(c.shape, c.b, i));
      }
    }
  }
}

TEST(OffsetsTest, UseWideArithmeticWherePositionsNeedIt) {
  const int64_t limit = std::numeric_limits<int32_t>::max();
  EXPECT_TRUE(MakeOffsets<1>({limit}, {Dims{1}}).narrow);
  const Offsets<1> wide = MakeOffsets<1>({2, limit}, {Dims{limit + 5, 1}});
  EXPECT_FALSE(wide.narrow);
  int64_t at;
  wide.At(limit + 3, &at);
  EXPECT_EQ(at, limit + 5 + 3);
}

TEST(OptimBatchTest, ChunksCoverEveryTensorOnce) {
  const std::vector<int64_t> sizes = {0, 1, kOptimChunk, 0, kOptimChunk + 1, 7};
  OptimBatch<float> batch;
  for (int64_t size : sizes) ASSERT_TRUE(batch.Add({}, size));
  std::vector<int64_t> covered(sizes.size(), 0);
  for (int32_t c = 0; c < batch.chunks(); ++c) {
    const OptimChunk chunk = batch.At(c);
    EXPECT_EQ(chunk.begin, covered[chunk.tensor]);
    EXPECT_GT(chunk.end, chunk.begin);
    EXPECT_LE(chunk.end - chunk.begin, kOptimChunk);
    covered[chunk.tensor] = chunk.end;
  }
  EXPECT_EQ(covered, sizes);
}

TEST(OptimBatchTest, IsFullBeforeTheArgumentOfALaunchIs) {
  OptimBatch<double> batch;
  for (int i = 0; i < batch.kMost; ++i) ASSERT_TRUE(batch.Add({}, 5));
  EXPECT_FALSE(batch.Add({}, 5));
  EXPECT_EQ(batch.chunks(), batch.kMost);
  EXPECT_LE(sizeof(batch) + sizeof(OptimStep<double>) + 64, size_t{4096});
  OptimBatch<float> large;
  ASSERT_TRUE(large.Add({}, int64_t{1} << 43));
  EXPECT_FALSE(large.Add({}, int64_t{1} << 44));
}

TEST(WindowsTest, PlacesAndColumnsAreEachOthersInverse) {
  Windows w;
  w.axis[1] = {3, 2, 1, 1, 7, 4};
  w.axis[2] = {2, 1, 1, 2, 5, 5};
  int found = 0;
  for (int64_t column = 0; column < w.columns(); ++column) {
    for (int64_t tap = 0; tap < w.taps(); ++tap) {
      const int64_t place = w.PlaceOf(column, tap);
      if (place < 0) continue;
      ASSERT_LT(place, w.plane());
      EXPECT_EQ(w.ColumnOf(place, tap), column);
      ++found;
    }
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace holdfast::cuda
