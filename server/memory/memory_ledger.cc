// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/memory/memory_ledger.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/memory/caching_allocator.h"
#include "server/memory/heap_meter.h"
#include "server/waits/no_wait.h"

namespace holdfast {
namespace {

std::string Size(uint64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / 1048576.0);
}

}  // namespace

// ---- account

MemoryAccount::MemoryAccount(std::shared_ptr<MemoryLedger> ledger,
                             std::string user)
    : ledger_(std::move(ledger)), user_(std::move(user)) {}

MemoryAccount::~MemoryAccount() {
  std::lock_guard<RankedMutex> lock(ledger_->mutex_);
  const auto found = ledger_->accounts_.find(user_);
  // A successor of the same name may be there already.
  if (found != ledger_->accounts_.end() && found->second.expired()) {
    ledger_->accounts_.erase(found);
  }
}

absl::Status MemoryAccount::Reserve(uint64_t bytes) {
  std::lock_guard<RankedMutex> lock(ledger_->mutex_);
  absl::Status status = ledger_->Check(*this, bytes);
  if (!status.ok()) return status;
  reserved_.fetch_add(bytes);
  ledger_->reserved_ += bytes;
  return absl::OkStatus();
}

void MemoryAccount::Take(uint64_t bytes) {
  std::lock_guard<RankedMutex> lock(ledger_->mutex_);
  reserved_.fetch_add(bytes);
  ledger_->reserved_ += bytes;
}

void MemoryAccount::Return(uint64_t bytes) {
  std::lock_guard<RankedMutex> lock(ledger_->mutex_);
  reserved_.fetch_sub(bytes);
  ledger_->reserved_ -= bytes;
}

absl::Status MemoryAccount::CheckRoom(uint64_t bytes) {
  std::lock_guard<RankedMutex> lock(ledger_->mutex_);
  return ledger_->Check(*this, bytes);
}

void MemoryAccount::SetLimits(uint64_t hard, uint64_t share) {
  std::lock_guard<RankedMutex> lock(ledger_->mutex_);
  hard_ = hard;
  share_ = share;
}

void MemoryAccount::Add(CachingAllocator* allocator) {
  std::lock_guard<RankedMutex> lock(ledger_->allocators_mutex_);
  allocators_.push_back(allocator);
}

void MemoryAccount::Remove(CachingAllocator* allocator) {
  std::lock_guard<RankedMutex> lock(ledger_->allocators_mutex_);
  allocators_.erase(
      std::remove(allocators_.begin(), allocators_.end(), allocator),
      allocators_.end());
}

// ---- ledger

absl::Status MemoryLedger::Check(const MemoryAccount& account,
                                 uint64_t bytes) const {
  const uint64_t own = account.reserved_.load();
  if (account.hard_ != 0 &&
      (bytes > account.hard_ || own > account.hard_ - bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the memory limit of user '", account.user_,
                     "' is reached: ", Size(own), " of ", Size(account.hard_),
                     " are taken, over all sessions"));
  }
  if (capacity_ == 0) return absl::OkStatus();
  if (bytes > capacity_ || reserved_ > capacity_ - bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the device is full: ", Size(reserved_), " of ", Size(capacity_),
        " are taken, ", Size(own), " by ", account.user_));
  }
  const uint64_t room = capacity_ - capacity_ * kKeptFree;
  if (account.share_ != 0 && own + bytes > account.share_ &&
      reserved_ + bytes > room) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the device is short of memory (", Size(reserved_), " of ",
        Size(capacity_), " are taken) and ", account.user_,
        " is above the share: ", Size(own), " of ", Size(account.share_)));
  }
  return absl::OkStatus();
}

std::shared_ptr<MemoryAccount> MemoryLedger::Account(const std::string& user) {
  // Made first: an account that dies takes the lock.
  auto made = std::make_shared<MemoryAccount>(shared_from_this(), user);
  std::shared_ptr<MemoryAccount> known;
  {
    std::lock_guard<RankedMutex> lock(mutex_);
    std::weak_ptr<MemoryAccount>& entry = accounts_[user];
    known = entry.lock();
    if (known == nullptr) {
      entry = made;
      known = made;
    }
  }
  return known;
}

std::vector<std::shared_ptr<MemoryAccount>> MemoryLedger::Accounts() {
  std::vector<std::shared_ptr<MemoryAccount>> all;
  std::lock_guard<RankedMutex> lock(mutex_);
  for (const auto& [user, account] : accounts_) {
    if (auto living = account.lock()) all.push_back(std::move(living));
  }
  return all;
}

uint64_t MemoryLedger::capacity() {
  std::lock_guard<RankedMutex> lock(mutex_);
  return capacity_;
}

void MemoryLedger::set_capacity(uint64_t bytes) {
  std::lock_guard<RankedMutex> lock(mutex_);
  capacity_ = bytes;
}

uint64_t MemoryLedger::reserved() {
  std::lock_guard<RankedMutex> lock(mutex_);
  return reserved_;
}

void MemoryLedger::Reclaim(MemoryAccount* needy, uint64_t bytes) {
  const HeapMeter::Elsewhere elsewhere;  // blocks of others go
  std::vector<std::shared_ptr<MemoryAccount>> order = Accounts();
  // The needy user's own first, then those who have most above their share.
  const auto rank = [&](const std::shared_ptr<MemoryAccount>& account) {
    std::lock_guard<RankedMutex> lock(mutex_);
    const uint64_t own = account->reserved_.load();
    const uint64_t above = own - std::min(own, account->share_);
    return account.get() == needy ? UINT64_MAX : above;
  };
  std::vector<std::pair<uint64_t, std::shared_ptr<MemoryAccount>>> ranked;
  for (auto& account : order) ranked.emplace_back(rank(account), account);
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first
                              : a.second->user() < b.second->user();
  });
  for (const auto& [above, account] : ranked) {
    if (account.get() != needy) {
      std::lock_guard<RankedMutex> lock(mutex_);
      if (Check(*needy, bytes).ok()) return;
      // Nobody else's memory helps against the user's own limit.
      if (needy->hard_ != 0 && needy->reserved_.load() + bytes > needy->hard_) {
        return;
      }
    }
    std::vector<CachingAllocator::Idle> idle;
    {
      std::lock_guard<RankedMutex> alive(allocators_mutex_);
      for (CachingAllocator* allocator : account->allocators_) {
        std::vector<CachingAllocator::Idle> its = allocator->TakeIdle();
        std::move(its.begin(), its.end(), std::back_inserter(idle));
      }
    }
    CachingAllocator::GiveBack(std::move(idle));
    if (NoWait::active()) NoWait::aside()->Finish();
  }
}

// ---- charge

MemoryCharge& MemoryCharge::operator=(MemoryCharge&& other) noexcept {
  if (this == &other) return *this;
  Clear();
  account_ = std::move(other.account_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void MemoryCharge::Clear() {
  if (bytes_ > 0) account_->Return(bytes_);
  bytes_ = 0;
}

absl::Status MemoryCharge::CheckRoom(uint64_t bytes) {
  if (account_ == nullptr || account_->CheckRoom(bytes).ok()) {
    return absl::OkStatus();
  }
  account_->ledger()->Reclaim(account_.get(), bytes);
  return account_->CheckRoom(bytes);
}

void MemoryCharge::AddAnyway(uint64_t bytes) {
  if (account_ == nullptr) return;
  account_->Take(bytes);
  bytes_ += bytes;
}

absl::Status MemoryCharge::Add(uint64_t bytes) {
  if (account_ == nullptr) return absl::OkStatus();
  absl::Status status = account_->Reserve(bytes);
  if (!status.ok()) {
    account_->ledger()->Reclaim(account_.get(), bytes);
    status = account_->Reserve(bytes);
  }
  if (status.ok()) bytes_ += bytes;
  return status;
}

}  // namespace holdfast
