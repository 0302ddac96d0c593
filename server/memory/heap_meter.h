// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// HeapMeter: the heap that one session's commands took and have not given back:
// handles, tape nodes, events, failures, hooks, profiles, and whatever comes
// later. It is on the account of the session's user, above the limit too, so
// that the ledger is true: what is to be refused then is the session's to say.
//
// The process's operator new and delete count per thread, without an atomic
// operation; a Scope books what its thread has counted meanwhile.
// Thread-safety: one thread at a time; bytes() and Beside from any thread.
#ifndef HOLDFAST_SERVER_MEMORY_HEAP_METER_H_
#define HOLDFAST_SERVER_MEMORY_HEAP_METER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "proto/steady_time.h"
#include "server/memory/memory_ledger.h"

namespace holdfast {

// Heap on an account, in steps: less than one is on nobody's. Above the limit,
// too, for it is taken already. Thread-safety: none.
class HeapCharge {
 public:
  static constexpr int64_t kStep = 64 << 10;

  // Null: nobody counts.
  explicit HeapCharge(std::shared_ptr<MemoryAccount> account = nullptr)
      : account_(std::move(account)) {}
  ~HeapCharge() { Settle(0); }
  HeapCharge(const HeapCharge&) = delete;
  HeapCharge& operator=(const HeapCharge&) = delete;

  // `held` bytes are there now. Whether the account was told. Falling by less
  // than two steps gives nothing back, so that a program that goes up and down
  // does not ask for every move.
  bool Settle(int64_t held) {
    if (account_ == nullptr ||
        (held != 0 && held < charged_ + kStep && held >= charged_ - kStep)) {
      return false;
    }
    Charge(held);
    return true;
  }
  // Of all charges since the process began, in steps. From any thread.
  static int64_t Freed() { return freed_.load(std::memory_order_relaxed); }
  const std::shared_ptr<MemoryAccount>& account() const { return account_; }
  // REQUIRES: nothing is held yet.
  void set_account(std::shared_ptr<MemoryAccount> account) {
    account_ = std::move(account);
  }

 private:
  void Charge(int64_t held);

  static inline std::atomic<int64_t> freed_{0};

  std::shared_ptr<MemoryAccount> account_;
  int64_t charged_ = 0;
};

class HeapMeter {
 public:
  // So much a session may have whoever is short of memory: who has filled
  // theirs with tensors can still take views of them and delete them.
  static constexpr int64_t kAlways = 8 << 20;
  // What a session may take while it is refused more: the next command that
  // takes heap ends it.
  static constexpr int64_t kRefusedMost = 64 << 20;

  // What is left at the end is on nobody's account.
  explicit HeapMeter(std::shared_ptr<MemoryAccount> account)
      : charge_(std::move(account)) {}

  // What this thread takes and gives back is counted for the meter, which is
  // Current() meanwhile. May be nested; the innermost counts.
  class Scope {
   public:
    explicit Scope(HeapMeter* meter);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    HeapMeter* const meter_;
    HeapMeter* const outer_;
    const int64_t start_;
  };
  // Inside a Scope: heap that another thread, or another owner, takes or gives
  // back, such as a transport's messages.
  class Elsewhere {
   public:
    Elsewhere() : start_(thread_bytes_) {}
    ~Elsewhere() { thread_bytes_ = start_; }
    Elsewhere(const Elsewhere&) = delete;
    Elsewhere& operator=(const Elsewhere&) = delete;

   private:
    const int64_t start_;
  };
  // On another thread than the one of Scopes: what it takes and gives back of
  // the meter's. The next Scope books it.
  class Beside {
   public:
    explicit Beside(HeapMeter* meter);
    ~Beside();
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;

   private:
    HeapMeter* const meter_;
    const int64_t start_;
  };
  // This thread's; null outside of Scopes.
  static HeapMeter* Current();
  // What this thread has taken, less what it has given back; for differences.
  static int64_t ThreadBytes() { return thread_bytes_; }
  // The process's operator new and delete say so.
  static void CountTaken(int64_t bytes) { thread_bytes_ += bytes; }

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // 0: none.
  void set_limit_bytes(uint64_t bytes) { limit_bytes_.store(bytes); }
  // Why the session may take no more; OK while it may. As of the last Scope.
  const absl::Status& refusal() const { return refusal_; }
  // It was refused and went on taking.
  bool spent() const {
    return !refusal_.ok() && bytes() > refused_at_ + kRefusedMost;
  }

  // Null: nobody counts.
  const std::shared_ptr<MemoryAccount>& account() const {
    return charge_.account();
  }

 private:
  // Net bytes that this thread has taken by operator new. What it frees of
  // others' counts against it: see Elsewhere. Here, since every op asks.
  static inline thread_local int64_t thread_bytes_ = 0;

  void Add(int64_t bytes);
  void Judge();

  HeapCharge charge_;
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> beside_{0};  // see Beside; not booked yet
  std::atomic<uint64_t> limit_bytes_{0};
  absl::Status refusal_;
  int64_t refused_at_ = 0;
  SteadyTime reclaim_again_ = SteadyTime::Past();
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_MEMORY_HEAP_METER_H_
