// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Recurring sequences of launches, done as recordings: what is computed stays
// the same, whatever comes between.
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/op_id.h"
#include "server/exec/cpu_device.h"
#include "server/fake_device/fake_device.h"
#include "server/replay/replaying_device.h"
#include "server/session/scripted_session.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

using V = std::vector<float>;

std::unique_ptr<Device> NewCpu() { return NewCpuDevice(1); }

// Cut where somebody asks for results, or at 12 launches: what is recorded does
// not depend on addresses.
ReplayOptions ByCountAlone() {
  ReplayOptions options;
  options.least = 4;
  options.most = 12;
  options.cut = ~uint64_t{0};
  options.sequences = 8;
  options.linger = absl::Seconds(60);  // however busy the machine is
  return options;
}

class ReplayTest : public SessionTest {
 protected:
  ReplayTest() : ReplayTest(new FakeDevice(absl::Milliseconds(1), &NewCpu)) {}
  explicit ReplayTest(FakeDevice* fake,
                      const ReplayOptions& options = ByCountAlone())
      : SessionTest(std::make_unique<ReplayingDevice>(
            std::unique_ptr<Device>(fake), fake, options)),
        fake_(fake) {
    Put(1, {1, 2, 3});
    Put(2, {0.5f, 0.25f, 2});
    Deliver();
  }
  // The device outlives its sessions.
  ~ReplayTest() override { session_.reset(); }

  // x = x * 2's value + `with`, `n` times, each over the memory of the last
  // but one; its handle.
  uint64_t Chain(int n, OpId op = OpId::mul) {
    uint64_t x = 1;
    for (int i = 0; i < n; ++i) {
      const uint64_t next = ++last_;
      Op(i % 2 == 0 ? op : OpId::add, {x, 2}, next);
      if (x != 1) Add()->add_release(x);
      x = next;
    }
    return x;
  }
  V Step(int n, OpId op = OpId::mul) {
    const uint64_t x = Chain(n, op);
    V values = Values(x);
    Add()->add_release(x);
    Deliver();
    return values;
  }

  FakeDevice* const fake_;
  uint64_t last_ = 100;
};

TEST_F(ReplayTest, ARecurringSequenceIsRecordedAndGivesTheSameResults) {
  const V first = Step(8);
  EXPECT_NE(first, (V{1, 2, 3}));
  for (int step = 1; step < 20; ++step) EXPECT_EQ(Step(8), first);
  // The allocator hands out two sets of addresses in turn, which are two
  // sequences: all but two plain runs of each.
  EXPECT_GE(fake_->recordings(), 1u);
  EXPECT_GE(fake_->replays(), 16u);
}

TEST_F(ReplayTest, AReplayReadsWhatIsThereThen) {
  for (int step = 0; step < 5; ++step) Step(8);
  const uint64_t before = fake_->replays();
  // In place: the memory is the same, what it holds is not.
  Op(OpId::add, {2, 2}, 0)->set_inplace(true);
  const V changed = Step(8);
  EXPECT_EQ(fake_->replays(), before);  // another sequence: it begins with add
  for (int step = 0; step < 5; ++step) EXPECT_EQ(Step(8), changed);
  EXPECT_GT(fake_->replays(), before);
}

TEST_F(ReplayTest, AnotherEndIsLaunchedAsItCame) {
  const V whole = Step(8);
  for (int step = 0; step < 4; ++step) EXPECT_EQ(Step(8), whole);
  const uint64_t before = fake_->replays();
  ASSERT_GT(before, 0u);
  V plain = {1, 2, 3};
  const V with = {0.5f, 0.25f, 2};
  for (int i = 0; i < 5; ++i) {
    for (size_t k = 0; k < plain.size(); ++k) {
      plain[k] = i % 2 == 0 ? plain[k] * with[k] : plain[k] + with[k];
    }
  }
  EXPECT_EQ(Step(5), plain);  // withheld, and then somebody reads
  // The same beginning, and then another op.
  uint64_t x = Chain(6);
  Op(OpId::neg, {x}, ++last_);
  const uint64_t negated = last_;
  V expected = Values(x);
  for (float& value : expected) value = -value;
  EXPECT_EQ(Values(negated), expected);
  EXPECT_EQ(fake_->replays(), before);
}

TEST_F(ReplayTest, OneBeginningMayHaveTwoEnds) {
  const V mul = Step(8), longer = Step(10);
  for (int step = 0; step < 6; ++step) {
    EXPECT_EQ(Step(8), mul);
    EXPECT_EQ(Step(10), longer);
  }
  EXPECT_GT(fake_->replays(), 6u);
}

TEST_F(ReplayTest, LongProgramsAreCutAtTheSamePlaces) {
  const V first = Step(30);
  for (int step = 0; step < 16; ++step) EXPECT_EQ(Step(30), first);
  EXPECT_GE(fake_->replays(), 12u * 2);  // 12, 12 and 6 launches
}

// As a training loop does: results live on into the next step, and go in
// another order than they came in.
TEST_F(ReplayTest, StepsThatKeepResultsGetTheirAddressesAgain) {
  std::vector<uint64_t> kept;
  constexpr int kSteps = 60;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<uint64_t> results;
    for (int i = 0; i < 9; ++i) {
      Op(i % 2 == 0 ? OpId::mul : OpId::add, {1, 2}, ++last_);
      results.push_back(last_);
    }
    for (size_t i : {2, 4, 0, 3, 1}) {
      if (!kept.empty()) Add()->add_release(kept[i]);
    }
    for (size_t i : {7, 2, 8, 4}) Add()->add_release(results[i]);
    kept = {results[1], results[3], results[5], results[0], results[6]};
    Values(results[1]);
  }
  // Two sets of addresses in turn, each launched plainly twice.
  EXPECT_GE(fake_->replays(), kSteps - 8u);
}

TEST_F(ReplayTest, WhatCannotBeRecordedIsLaunched) {
  fake_->RefuseToRecord("add");
  const V first = Step(8);
  for (int step = 0; step < 5; ++step) EXPECT_EQ(Step(8), first);
  EXPECT_EQ(fake_->recordings(), 0u);
  EXPECT_EQ(fake_->replays(), 0u);
}

TEST_F(ReplayTest, TheOldestSequencesAreForgotten) {
  for (OpId op :
       {OpId::mul, OpId::sub, OpId::div, OpId::maximum, OpId::minimum}) {
    const V first = Step(8, op);
    for (int step = 0; step < 8; ++step) EXPECT_EQ(Step(8, op), first);
  }
  EXPECT_GE(fake_->replays(), 20u);
  EXPECT_GE(fake_->recordings(), 1u);
  EXPECT_LE(fake_->recordings(), 8u);
}

TEST_F(ReplayTest, WithOtherNumericsRecordingsAreMadeAgain) {
  for (int step = 0; step < 10; ++step) Step(8);
  EXPECT_GE(fake_->recordings(), 1u);
  Add()->mutable_set_numerics()->set_matmul_tf32(true);
  Deliver();
  EXPECT_EQ(fake_->recordings(), 0u);
  EXPECT_TRUE(fake_->numerics(session_->options().stream).matmul_tf32);
  for (int step = 0; step < 10; ++step) Step(8);
  EXPECT_GE(fake_->recordings(), 1u);
}

TEST_F(ReplayTest, SequencesEndWithTheirSession) {
  for (int step = 0; step < 10; ++step) Step(8);
  EXPECT_GE(fake_->recordings(), 1u);
  Chain(5);
  Deliver();
  session_->End(absl::OkStatus());
  session_.reset();
  EXPECT_EQ(fake_->recordings(), 0u);
}

TEST_F(ReplayTest, AFailureOfAWithheldOpIsToldByTheNextRead) {
  for (int step = 0; step < 4; ++step) Step(8);
  fake_->BreakOn("add", nullptr);
  const uint64_t x = Chain(5);  // withheld, and then launched
  EXPECT_THAT(Read(x).status().message(), HasSubstr("one of add"));
}

ReplayOptions ShortWaits() {
  ReplayOptions options = ByCountAlone();
  options.linger = absl::Milliseconds(1);
  return options;
}

class PausingReplayTest : public ReplayTest {
 protected:
  PausingReplayTest()
      : ReplayTest(new FakeDevice(absl::Milliseconds(1), &NewCpu),
                   ShortWaits()) {}
};

TEST_F(PausingReplayTest, WhatIsWithheldBeginsByItself) {
  const V whole = Step(8);
  while (fake_->replays() == 0) EXPECT_EQ(Step(8), whole);
  const uint64_t before = fake_->launches();
  const uint64_t x = Chain(5);
  Deliver();
  while (fake_->launches() < before + 5) absl::SleepFor(absl::Milliseconds(1));
  V expected = Values(x);
  Add()->add_release(x);
  EXPECT_EQ(Step(5), expected);
}

}  // namespace
}  // namespace holdfast
