// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/run_ahead.h"

#include <atomic>
#include <limits>

#include "client/op_cost.h"
#include "gtest/gtest.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "ops/tensor_spec.h"

namespace holdfast::client {
namespace {

constexpr uint64_t kSecond = 1000000000;  // of cost, where nothing is measured

TEST(RunAheadTest, FarIsWhatIsNotAnswered) {
  std::atomic<bool> far{false};
  RunAhead ahead(2, &far);
  EXPECT_FALSE(ahead.Add(kSecond / 8));
  ASSERT_TRUE(ahead.Add(kSecond));
  EXPECT_EQ(ahead.Probe(), 1u);
  EXPECT_FALSE(far);
  ASSERT_TRUE(ahead.Add(kSecond));
  EXPECT_EQ(ahead.Probe(), 2u);
  EXPECT_TRUE(far);
  ahead.Answered(1, 0);
  EXPECT_FALSE(far);
  EXPECT_TRUE(ahead.answered(1));
  EXPECT_FALSE(ahead.answered(2));
  EXPECT_DOUBLE_EQ(ahead.Ahead(), 1);
}

TEST(RunAheadTest, OneLongOpIsNotWaitedFor) {
  std::atomic<bool> far{false};
  RunAhead ahead(0.5, &far);
  ASSERT_TRUE(ahead.Add(100 * kSecond));
  ahead.Probe();
  EXPECT_FALSE(far);
  ASSERT_TRUE(ahead.Add(kSecond));
  ahead.Probe();
  EXPECT_TRUE(far);
}

// Sends work of `cost` until it is far; how much there was.
uint64_t SendUntilFar(RunAhead* ahead, const std::atomic<bool>& far,
                      uint64_t cost, uint64_t* probe) {
  uint64_t sent = 0;
  while (!far && sent < 1e15) {
    sent += cost;
    if (ahead->Add(cost)) *probe = ahead->Probe();
  }
  return sent;
}

TEST(RunAheadTest, TheBoundIsInTheDevicesTime) {
  // How long the device takes for what is estimated as a second.
  for (const double speed : {0.001, 1.0, 100.0}) {
    std::atomic<bool> far{false};
    RunAhead ahead(2, &far);
    uint64_t probe = 0;
    double sent = 0;
    for (int i = 0; i < 20; ++i) {
      sent += SendUntilFar(&ahead, far, kSecond / 1000, &probe);
      ahead.Answered(probe, sent / kSecond * speed);
      EXPECT_FALSE(far);
    }
    const double last =
        SendUntilFar(&ahead, far, kSecond / 1000, &probe) * speed / kSecond;
    EXPECT_GT(last, 1.5) << speed;
    EXPECT_LT(last, 3) << speed;
  }
}

TEST(RunAheadTest, AnswersThatTellNoTimeChangeNothing) {
  std::atomic<bool> far{false};
  RunAhead ahead(2, &far);
  for (int i = 0; i < 100; ++i) {
    ahead.Add(kSecond);
    ahead.Answered(ahead.Probe(), 5);
  }
  uint64_t probe = 0;
  EXPECT_LT(SendUntilFar(&ahead, far, kSecond / 10, &probe), 3 * kSecond);
}

TEST(RunAheadTest, WithoutABoundNothingIsFar) {
  std::atomic<bool> far{false};
  RunAhead ahead(std::numeric_limits<double>::infinity(), &far);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(ahead.Add(1000 * kSecond));
  ahead.Probe();
  ahead.Probe();
  EXPECT_FALSE(far);
}

TEST(OpCostTest, TellsAProductFromAView) {
  const TensorSpec square = ContiguousSpec(DType::kFloat32, {3000, 3000});
  const TensorSpec* inputs[] = {&square, &square};
  const auto cost = [&](OpId op) {
    return CostOf(CostKinds()[static_cast<int>(op)], inputs, &square);
  };
  EXPECT_EQ(cost(OpId::transpose), kLeastCost);
  EXPECT_GT(cost(OpId::matmul), 50 * cost(OpId::add));
  EXPECT_GT(cost(OpId::linalg_eigh), cost(OpId::matmul));
  const TensorSpec one = ContiguousSpec(DType::kFloat32, {});
  const TensorSpec* read[] = {&square};
  EXPECT_GT(CostOf(CostKinds()[static_cast<int>(OpId::sum)], read, &one),
            1000 * kLeastCost);
}

}  // namespace
}  // namespace holdfast::client
