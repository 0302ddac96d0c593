// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/memory/heap_meter.h"

#include <memory>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<char>;

constexpr int64_t kMiB = 1 << 20;

class HeapMeterTest : public testing::Test {
 protected:
  HeapMeterTest()
      : ledger_(std::make_shared<MemoryLedger>(0)),
        account_(ledger_->Account("ann")),
        meter_(account_) {}

  // Keeps that much of the heap, for the meter.
  void Take(int64_t bytes) {
    const HeapMeter::Scope scope(&meter_);
    kept_.push_back(std::make_unique<Bytes>(bytes));
  }
  void GiveBack() {
    const HeapMeter::Scope scope(&meter_);
    kept_.clear();
  }

  const std::shared_ptr<MemoryLedger> ledger_;
  const std::shared_ptr<MemoryAccount> account_;
  HeapMeter meter_;
  std::vector<std::unique_ptr<Bytes>> kept_;
};

TEST_F(HeapMeterTest, WhatAScopeTakesIsOnTheAccount) {
  const Bytes nobodys(kMiB);
  Take(3 * kMiB);
  EXPECT_GE(meter_.bytes(), 3 * kMiB);
  EXPECT_LT(meter_.bytes(), 3 * kMiB + 16384);
  EXPECT_EQ(account_->reserved(), uint64_t{3} * kMiB);
  Take(1000);  // less than a step
  EXPECT_EQ(account_->reserved(), uint64_t{3} * kMiB);
  GiveBack();
  EXPECT_LT(meter_.bytes(), 1000);
  EXPECT_EQ(account_->reserved(), 0u);
}

TEST_F(HeapMeterTest, TheInnermostScopeCounts) {
  HeapMeter other(account_);
  const HeapMeter::Scope scope(&meter_);
  {
    const HeapMeter::Scope inner(&other);
    EXPECT_EQ(HeapMeter::Current(), &other);
    kept_.push_back(std::make_unique<Bytes>(kMiB));
  }
  EXPECT_EQ(HeapMeter::Current(), &meter_);
  EXPECT_GE(other.bytes(), kMiB);
  EXPECT_EQ(meter_.bytes(), 0);
}

TEST_F(HeapMeterTest, WhatIsElsewhereDoesNotCount) {
  {
    const HeapMeter::Scope scope(&meter_);
    const HeapMeter::Elsewhere elsewhere;
    kept_.push_back(std::make_unique<Bytes>(kMiB));
  }
  EXPECT_EQ(meter_.bytes(), 0);
  GiveBack();  // of others: no credit
  EXPECT_EQ(meter_.bytes(), 0);
  Take(kMiB);
  EXPECT_GE(meter_.bytes(), kMiB);
}

TEST_F(HeapMeterTest, AnotherThreadsShareIsBookedLater) {
  std::thread([this] {
    const HeapMeter::Beside beside(&meter_);
    kept_.push_back(std::make_unique<Bytes>(kMiB));
  }).join();
  EXPECT_EQ(meter_.bytes(), 0);
  { const HeapMeter::Scope scope(&meter_); }
  EXPECT_GE(meter_.bytes(), kMiB);
}

TEST_F(HeapMeterTest, AboveTheLimitItIsCountedAndRefused) {
  account_->SetLimits(/*hard=*/HeapMeter::kAlways, /*share=*/0);
  Take(HeapMeter::kAlways - kMiB);
  EXPECT_TRUE(meter_.refusal().ok());
  Take(3 * kMiB);
  EXPECT_GT(account_->reserved(), uint64_t{HeapMeter::kAlways});
  EXPECT_THAT(std::string(meter_.refusal().message()),
              HasSubstr("the memory limit of user 'ann' is reached"));
  EXPECT_FALSE(meter_.spent());
  Take(HeapMeter::kRefusedMost + kMiB);
  EXPECT_TRUE(meter_.spent());
  GiveBack();
  EXPECT_TRUE(meter_.refusal().ok());
  EXPECT_FALSE(meter_.spent());
}

TEST_F(HeapMeterTest, ALittleMayBeHadByAnybody) {
  account_->SetLimits(/*hard=*/kMiB, /*share=*/0);
  Take(4 * kMiB);
  EXPECT_TRUE(meter_.refusal().ok());
}

TEST_F(HeapMeterTest, TheSessionsOwnLimit) {
  meter_.set_limit_bytes(10 * kMiB);
  Take(11 * kMiB);
  EXPECT_THAT(std::string(meter_.refusal().message()),
              HasSubstr("the session's limit is reached"));
}

}  // namespace
}  // namespace holdfast
