// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/memory/memory_ledger.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/memory/caching_allocator.h"
#include "server/memory/host_memory.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

class LedgerTest : public testing::Test {
 protected:
  std::unique_ptr<CachingAllocator> Allocator(const std::string& user,
                                              size_t limit = 0) {
    return std::make_unique<CachingAllocator>(NewMemory(), limit, 0,
                                              ledger_->Account(user));
  }
  static std::unique_ptr<DeviceMemory> NewMemory();

  const std::shared_ptr<MemoryLedger> ledger_ =
      std::make_shared<MemoryLedger>(100 * kMiB);
};

std::unique_ptr<DeviceMemory> LedgerTest::NewMemory() {
  return std::make_unique<HostMemory>(/*shared=*/false);
}

TEST_F(LedgerTest, CountsSegmentsUntilTheyAreGivenBack) {
  auto account = ledger_->Account("alice");
  {
    auto memory = Allocator("alice");
    MemoryBlock* block = *memory->Allocate(24 * kMiB, 0);
    EXPECT_EQ(account->reserved(), 24 * kMiB);
    EXPECT_EQ(ledger_->reserved(), 24 * kMiB);
    memory->Free(block);
    EXPECT_EQ(account->reserved(), 24 * kMiB);  // kept for reuse
    memory->ReleaseCached();
    EXPECT_EQ(account->reserved(), 0u);
    EXPECT_TRUE(memory->Allocate(8 * kMiB, 0).ok());
  }
  EXPECT_EQ(ledger_->reserved(), 0u);
}

TEST_F(LedgerTest, TheHardLimitIsOverAllSessionsOfAUser) {
  auto keep = ledger_->Account("alice");
  keep->SetLimits(48 * kMiB, 0);
  auto first = Allocator("alice"), second = Allocator("alice");
  MemoryBlock* block = *first->Allocate(32 * kMiB, 0);
  const absl::Status refused = second->Allocate(32 * kMiB, 0).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("limit of user 'alice'"));
  EXPECT_TRUE(Allocator("bob")->Allocate(32 * kMiB, 0).ok());
  // What the first session only keeps for reuse is the second's to have.
  first->Free(block);
  EXPECT_TRUE(second->Allocate(32 * kMiB, 0).ok());
  EXPECT_EQ(keep->reserved(), 32 * kMiB);
}

TEST_F(LedgerTest, AboveTheShareMemoryIsLentWhileThereIsRoom) {
  auto alice = ledger_->Account("alice");
  auto bob = ledger_->Account("bob");
  alice->SetLimits(0, 40 * kMiB);
  bob->SetLimits(0, 40 * kMiB);
  auto of_alice = Allocator("alice"), of_bob = Allocator("bob");
  // Room: alice may have more than her share, 90 of 100.
  ASSERT_TRUE(of_alice->Allocate(64 * kMiB, 0).ok());
  ASSERT_TRUE(of_bob->Allocate(24 * kMiB, 0).ok());
  // Short: she is refused, bob within his share is not.
  const absl::Status refused = of_alice->Allocate(10 * kMiB, 0).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("above the share"));
  EXPECT_TRUE(of_bob->Allocate(10 * kMiB, 0).ok());
  const absl::Status full = of_bob->Allocate(10 * kMiB, 0).status();
  EXPECT_THAT(std::string(full.message()), HasSubstr("device is full"));
}

TEST_F(LedgerTest, CachesOfOthersAreGivenBackUnderPressure) {
  auto of_alice = Allocator("alice"), of_bob = Allocator("bob");
  of_alice->Free(*of_alice->Allocate(80 * kMiB, 0));
  EXPECT_EQ(ledger_->reserved(), 80 * kMiB);
  EXPECT_TRUE(of_bob->Allocate(60 * kMiB, 0).ok());
  EXPECT_EQ(ledger_->Account("alice")->reserved(), 0u);
}

TEST_F(LedgerTest, ALimitBelowWhatIsTakenRefusesTheNext) {
  auto account = ledger_->Account("alice");
  auto memory = Allocator("alice");
  ASSERT_TRUE(memory->Allocate(32 * kMiB, 0).ok());
  account->SetLimits(16 * kMiB, 0);
  EXPECT_FALSE(memory->Allocate(10 * kMiB, 0).ok());
  account->SetLimits(0, 0);
  EXPECT_TRUE(memory->Allocate(10 * kMiB, 0).ok());
}

TEST_F(LedgerTest, AnAccountGoesWithItsLastOwner) {
  ledger_->Account("alice");
  EXPECT_TRUE(ledger_->Accounts().empty());
  auto memory = Allocator("alice");
  EXPECT_EQ(ledger_->Accounts().size(), 1u);
}

TEST_F(LedgerTest, AChargeIsReturnedOnce) {
  auto account = ledger_->Account("alice");
  account->SetLimits(10 * kMiB, 0);
  MemoryCharge charge(account);
  EXPECT_TRUE(charge.CheckRoom(10 * kMiB).ok());
  EXPECT_THAT(std::string(charge.CheckRoom(11 * kMiB).message()),
              HasSubstr("limit of user 'alice'"));
  ASSERT_TRUE(charge.Add(6 * kMiB).ok());
  ASSERT_TRUE(charge.Add(4 * kMiB).ok());
  EXPECT_FALSE(charge.Add(1).ok());
  EXPECT_EQ(account->reserved(), 10 * kMiB);
  {
    MemoryCharge moved = std::move(charge);
    EXPECT_EQ(moved.bytes(), 10 * kMiB);
    charge = MemoryCharge(account);
    EXPECT_EQ(account->reserved(), 10 * kMiB);
  }
  EXPECT_EQ(account->reserved(), 0u);
  MemoryCharge uncounted;
  EXPECT_TRUE(uncounted.Add(1000 * kMiB).ok());
}

TEST_F(LedgerTest, AChargeTakesBackWhatIsOnlyKept) {
  auto account = ledger_->Account("alice");
  account->SetLimits(40 * kMiB, 0);
  auto memory = Allocator("alice");
  memory->Free(*memory->Allocate(30 * kMiB, 0));
  MemoryCharge charge(account);
  EXPECT_TRUE(charge.CheckRoom(20 * kMiB).ok());
  EXPECT_TRUE(charge.Add(20 * kMiB).ok());
  EXPECT_EQ(account->reserved(), 20 * kMiB);
}

}  // namespace
}  // namespace holdfast
