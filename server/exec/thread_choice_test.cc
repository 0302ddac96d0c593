// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/thread_choice.h"

#include <utility>

#include "gtest/gtest.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

constexpr int64_t kMicrosecond = 1000;
constexpr int64_t kMillisecond = 1000 * kMicrosecond;

// A machine on which calls take what it says, one after the other.
class Machine {
 public:
  int64_t team = 30 * kMicrosecond, alone = 50 * kMicrosecond;

  // Calls for so long; returns the part of them on one thread.
  double Run(int64_t nanoseconds, uint64_t key = 7) {
    int calls = 0, on_one = 0;
    const int64_t end = now_ + nanoseconds;
    while (now_ < end) {
      const bool one = choice_.Choose(key, now_) == ThreadChoice::kAlone;
      const int64_t took = one ? alone : team;
      choice_.Took(took);
      now_ += took;
      ++calls;
      on_one += one;
    }
    return static_cast<double>(on_one) / calls;
  }

 private:
  ThreadChoice choice_;
  int64_t now_ = 1;
};

TEST(ThreadChoiceTest, TheFasterWayIsTakenAndTheOtherSeldomTried) {
  Machine machine;
  machine.Run(10 * kMillisecond);
  EXPECT_LT(machine.Run(1000 * kMillisecond), 0.03);
}

TEST(ThreadChoiceTest, ATeamThatWaitsForProcessorsIsLeft) {
  Machine machine;
  machine.Run(1000 * kMillisecond);
  machine.team = 3 * kMillisecond;
  machine.alone = 60 * kMicrosecond;
  machine.Run(50 * kMillisecond);
  // What trying costs: calls of 3 ms, one 64th of the time.
  EXPECT_GT(machine.Run(1000 * kMillisecond), 0.99);
}

TEST(ThreadChoiceTest, AndTakenAgainWhenTheyAreFree) {
  Machine machine;
  machine.team = 3 * kMillisecond;
  machine.Run(1000 * kMillisecond);
  machine.team = 30 * kMicrosecond;
  machine.Run(2000 * kMillisecond);
  EXPECT_LT(machine.Run(1000 * kMillisecond), 0.03);
}

TEST(ThreadChoiceTest, AChoiceIsMadeForEachCallApart) {
  Machine machine;
  machine.alone = 10 * kMicrosecond;
  machine.Run(10 * kMillisecond, 1);
  EXPECT_GT(machine.Run(100 * kMillisecond, 1), 0.9);
  machine.alone = 50 * kMicrosecond;
  machine.Run(10 * kMillisecond, 2);
  EXPECT_LT(machine.Run(100 * kMillisecond, 2), 0.1);
}

uint64_t KeyOf(OpId op, Dims shape) {
  const TensorSpec spec = ContiguousSpec(DType::kFloat32, std::move(shape));
  const TensorView view = {nullptr, &spec};
  return ThreadChoiceKey(Attrs(&GetOp(op)), {view, view}, {view});
}

TEST(ThreadChoiceTest, CallsOfEqualLayoutHaveOneKey) {
  EXPECT_EQ(KeyOf(OpId::add, {100, 100}), KeyOf(OpId::add, {100, 100}));
  EXPECT_NE(KeyOf(OpId::add, {100, 100}), KeyOf(OpId::mul, {100, 100}));
  EXPECT_NE(KeyOf(OpId::add, {100, 100}), KeyOf(OpId::add, {10000}));
}

TEST(ThreadChoiceTest, WhatDependsOnTheNumberOfThreadsHasNoChoice) {
  EXPECT_NE(KeyOf(OpId::matmul, {128, 128}), 0u);
  EXPECT_EQ(KeyOf(OpId::matmul, {512, 512}), 0u);
  EXPECT_EQ(KeyOf(OpId::conv2d, {16, 16, 16, 16}), 0u);
  EXPECT_EQ(KeyOf(OpId::add, {10}), 0u);
}

}  // namespace
}  // namespace holdfast
