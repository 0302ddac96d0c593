// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// MemoryLedger: whose the device's memory is. Every segment that an allocator
// takes is on the account of a user until it is given back, also when its
// session has ended and others still use what it shares. An account has a hard
// limit, and a share: above the share memory is given while the device has room
// and refused first when it has not.
// Thread-safety: all methods from any thread. Called for whole segments, not
// for tensors.
#ifndef HOLDFAST_SERVER_MEMORY_MEMORY_LEDGER_H_
#define HOLDFAST_SERVER_MEMORY_MEMORY_LEDGER_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/waits/ranked_mutex.h"

namespace holdfast {

class CachingAllocator;
class MemoryLedger;

// One user's account. Outlives the ledger's interest in it: allocators own it
// too.
class MemoryAccount : public std::enable_shared_from_this<MemoryAccount> {
 public:
  MemoryAccount(std::shared_ptr<MemoryLedger> ledger, std::string user);
  ~MemoryAccount();

  // Takes `bytes` of the device; RESOURCE_EXHAUSTED names the limit.
  absl::Status Reserve(uint64_t bytes);
  void Return(uint64_t bytes);
  // The same where the memory is taken already: above the limit, too.
  void Take(uint64_t bytes);
  // Whether Reserve would give as many now.
  absl::Status CheckRoom(uint64_t bytes);

  const std::string& user() const { return user_; }
  MemoryLedger* ledger() const { return ledger_.get(); }
  uint64_t reserved() const { return reserved_.load(); }
  // 0: none.
  void SetLimits(uint64_t hard, uint64_t share);

  // Allocators of this account's, which may give back what they only keep for
  // reuse.
  void Add(CachingAllocator* allocator);
  void Remove(CachingAllocator* allocator);

 private:
  friend class MemoryLedger;
  const std::shared_ptr<MemoryLedger> ledger_;
  const std::string user_;
  std::atomic<uint64_t> reserved_{0};  // changed under the ledger's lock
  uint64_t hard_ = 0;                  // guarded by it
  uint64_t share_ = 0;
  std::vector<CachingAllocator*> allocators_;
};

class MemoryLedger : public std::enable_shared_from_this<MemoryLedger> {
 public:
  // Of the device, what users above their share leave free for the others.
  static constexpr double kKeptFree = 0.1;

  // `capacity`: bytes for all users together; 0: not known, then only hard
  // limits hold.
  explicit MemoryLedger(uint64_t capacity) : capacity_(capacity) {}

  // The user's account, made when first asked for.
  std::shared_ptr<MemoryAccount> Account(const std::string& user);
  std::vector<std::shared_ptr<MemoryAccount>> Accounts();
  uint64_t capacity();
  void set_capacity(uint64_t bytes);
  uint64_t reserved();

  // Memory is short for `needy`: its own allocators, then those of users above
  // their share, then all others give back what they keep for reuse, until
  // `bytes` can be had or nothing is left. REQUIRES: the caller holds no
  // allocator's lock.
  void Reclaim(MemoryAccount* needy, uint64_t bytes);

 private:
  friend class MemoryAccount;
  absl::Status Check(const MemoryAccount& account, uint64_t bytes) const;

  // Guards what follows, and the accounts' limits.
  RankedMutex mutex_{LockRank::kLedger};
  uint64_t capacity_;
  uint64_t reserved_ = 0;
  std::map<std::string, std::weak_ptr<MemoryAccount>> accounts_;
  // Held while allocators of others are asked for what they only keep, so that
  // none dies meanwhile; what they say is given back without it.
  RankedMutex allocators_mutex_{LockRank::kAllocators};
};

// Memory outside allocators that is on an account, until the charge ends.
// Without an account nothing is counted. Thread-safety: none; REQUIRES: the
// caller holds no allocator's lock.
class MemoryCharge {
 public:
  explicit MemoryCharge(std::shared_ptr<MemoryAccount> account = nullptr)
      : account_(std::move(account)) {}
  ~MemoryCharge() { Clear(); }
  MemoryCharge(MemoryCharge&& other) noexcept
      : account_(std::move(other.account_)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryCharge& operator=(MemoryCharge&& other) noexcept;

  // Takes more; what others keep for reuse is given back for it.
  absl::Status Add(uint64_t bytes);
  // The same of memory that is there already: above the limit, too.
  void AddAnyway(uint64_t bytes);
  // Whether as many more could be had now.
  absl::Status CheckRoom(uint64_t bytes);
  uint64_t bytes() const { return bytes_; }

 private:
  void Clear();

  std::shared_ptr<MemoryAccount> account_;
  uint64_t bytes_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_MEMORY_MEMORY_LEDGER_H_
