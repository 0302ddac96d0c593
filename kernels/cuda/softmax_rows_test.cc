// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of softmax as the threads of a group walk them, one rank after the
// other, and sums of exponentials whatever is in a row.
#include "kernels/cuda/softmax_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/host_context.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cuda {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(SoftmaxRowsTest, RowsAreAlongTheirDimension) {
  const int64_t outer = 3, n = 4, inner = 5;
  const SoftmaxRows rows(outer, n, inner);
  ASSERT_EQ(rows.rows(), outer * inner);
  std::vector<int> seen(outer * n * inner, 0);
  for (int64_t row = 0; row < rows.rows(); ++row) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = rows.Start(row) + j * rows.apart();
      ASSERT_EQ(at / (n * inner), row / inner);
      ++seen[at];
    }
  }
  EXPECT_EQ(seen, std::vector<int>(outer * n * inner, 1));
}

TEST(SoftmaxRowsTest, LengthsDecideWhoHoldsRows) {
  EXPECT_EQ(SoftmaxRows(9, 8192, 1).held_group<float>(), kBlockThreads);
  EXPECT_EQ(SoftmaxRows(9, 1024, 1).held_group<float>(), kWarp);
  EXPECT_EQ(SoftmaxRows(9, 16, 1).held_group<float>(), 1);
  EXPECT_EQ(SoftmaxRows(9, 8193, 1).held_group<float>(), 0);
  EXPECT_EQ(SoftmaxRows(9, 8193, 1).walking_group(), kBlockThreads);
  // Neighbouring threads read neighbouring rows.
  EXPECT_EQ(SoftmaxRows(9, 32, 32).held_group<float>(), 1);
  EXPECT_EQ(SoftmaxRows(9, 33, 32).held_group<float>(), 0);
  EXPECT_EQ(SoftmaxRows(9, 33, 32).walking_group(), 1);
  EXPECT_TRUE(SoftmaxRows(9, 8, 1).packed<BFloat16>());
  EXPECT_FALSE(SoftmaxRows(9, 12, 1).packed<BFloat16>());
  EXPECT_FALSE(SoftmaxRows(9, 8, 2).packed<BFloat16>());
}

TEST(DispatchHeldTest, PartsHoldTheirRows) {
  for (int64_t n : {1, 8, 9, 16, 17, 256, 257, 1024, 1025, 2048, 2049, 8192}) {
    const int group = HeldGroup<float>(n);
    const absl::Status s = DispatchHeld<float>(n, group, [&](auto part) {
      EXPECT_GE(int64_t{1} * part() * group, n * kHoldingThreads);
      return absl::OkStatus();
    });
    EXPECT_TRUE(s.ok());
  }
}

template <int kWidth>
void ExpectWalksTouchEachElementOnce(int64_t n, int64_t inner, int size) {
  struct alignas(16) Block {
    float x[4];
  };
  std::vector<Block> blocks[3];
  for (auto& b : blocks) b.resize(n * inner / 4 + 1);
  float *x = blocks[0][0].x, *y = blocks[1][0].x, *out = blocks[2][0].x;
  for (int64_t i = 0; i < n * inner; ++i) {
    x[i] = static_cast<float>(i + 1);
    y[i] = -2 * x[i];
  }
  const WalkedRow<float, kWidth> walk(SoftmaxRows(1, n, inner));
  const float* const rows[] = {x + inner - 1, y + inner - 1};
  std::vector<int> seen(n * inner, 0);
  for (int rank = 0; rank < size; ++rank) {
    Group group;
    group.rank = rank;
    group.size = size;
    walk.ForEach(group, rows, [&](const auto& v) {
      for (size_t e = 0; e < std::size(v[0]); ++e) {
        ++seen[static_cast<int64_t>(v[0][e]) - 1];
        ASSERT_EQ(v[1][e], -2 * v[0][e]);
      }
    });
    walk.Map(group, rows, out + inner - 1, [&](float(&v)[2][kWidth]) {
      for (int e = 0; e < kWidth; ++e) v[0][e] -= v[1][e];
    });
  }
  for (int64_t i = 0; i < n * inner; ++i) {
    const bool of_row = i % inner == inner - 1;
    ASSERT_EQ(seen[i], of_row) << i;
    ASSERT_EQ(out[i], of_row ? 3 * x[i] : 0) << i;
  }
}

TEST(WalkedRowTest, RanksTouchEachElementOnce) {
  for (int64_t n : {1, 2, 7, 8, 33, 1024, 4097, 8192}) {
    for (int size : {1, 32, 256}) {
      ExpectWalksTouchEachElementOnce<1>(n, 1, size);
      ExpectWalksTouchEachElementOnce<1>(n, 3, size);
      ExpectWalksTouchEachElementOnce<4>(4 * n, 1, size);
    }
  }
}

ExpSum<double> SumByPacks(const std::vector<double>& row) {
  ExpSum<double> parts[2];
  for (size_t i = 0; i + 2 <= row.size(); i += 2) {
    const double pack[2] = {row[i], row[i + 1]};
    parts[i >= row.size() / 2].Take(pack);
  }
  return CombineExpSums()(parts[0], parts[1]);
}

TEST(ExpSumTest, IsTheSumInOnePass) {
  const std::vector<std::vector<double>> rows = {{1, 2, 3, 4},
                                                 {1e4, -1e4, 1e4 + 1, 3},
                                                 {-1e4, -1e4 - 1, -2e4, -1e4},
                                                 {-kInf, -kInf, 1, 2},
                                                 {5, -kInf, -kInf, -kInf},
                                                 {-3, -3, -700, 700}};
  for (const std::vector<double>& row : rows) {
    const double largest = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (double x : row) sum += std::exp(x - largest);
    const ExpSum<double> all = SumByPacks(row);
    EXPECT_EQ(all.largest, largest);
    EXPECT_NEAR(all.sum, sum, 1e-14 * sum);
  }
}

TEST(ExpSumTest, NothingHidesNaN) {
  const std::vector<std::vector<double>> rows = {{kNaN, -kInf, 1, 2},
                                                 {1, 2, -kInf, kNaN},
                                                 {kNaN, 5, 1, 2},
                                                 {1, kInf, 2, 3},
                                                 {1, 2, kInf, kInf}};
  for (const std::vector<double>& row : rows) {
    EXPECT_TRUE(std::isnan(SumByPacks(row).sum)) << row[0] << " " << row[3];
  }
  // Results are exp(-inf - largest) / 0, which is NaN as well.
  EXPECT_EQ(SumByPacks({-kInf, -kInf}).largest, -kInf);
  EXPECT_EQ(SumByPacks({-kInf, -kInf}).sum, 0);
}

TEST(SoftmaxTest, ResultsMayBeginWherePacksDoNot) {
  alignas(16) float x[8], out[10];
  for (int i = 0; i < 8; ++i) x[i] = static_cast<float>(i);
  for (float& v : out) v = -5;
  const TensorSpec spec = ContiguousSpec(DType::kFloat32, {1, 8});
  Attrs attrs(&GetOp(OpId::softmax));
  attrs.Set("dim", int64_t{1});
  HostContext context;
  const absl::Status s =
      RunCudaOp(context, attrs, {{x, &spec}}, {{out + 1, &spec}});
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(out[0], -5);
  EXPECT_EQ(out[9], -5);
  for (int i = 0; i < 8; ++i) {
    EXPECT_NEAR(out[1 + i],
                std::exp(i - 7.0) * (1 - std::exp(-1.0)) / (1 - std::exp(-8.0)),
                1e-7);
  }
}

}  // namespace
}  // namespace holdfast::cuda
