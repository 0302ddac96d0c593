// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/memory/heap_meter.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/steady_time.h"
#include "server/waits/no_wait.h"

#if defined(__SANITIZE_THREAD__)
extern "C" {
extern const char __executable_start, etext;  // the linker's
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace holdfast {
namespace {

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer takes malloc and free for writes, but not where a library
// calls them that it cannot follow (third_party/sanitizers). To it the caller
// of those below would be this file: who called this file, says so itself.
class Allocates {
 public:
  explicit Allocates(const void* caller)
      : foreign_(caller < &__executable_start || caller >= &etext) {
    if (foreign_) AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Allocates() {
    if (foreign_) AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  }

 private:
  const bool foreign_;
};
// In the operators below, which are this code's only callers.
#define HOLDFAST_OPERATOR inline __attribute__((always_inline))
#define HOLDFAST_ALLOCATES \
  const Allocates allocates(__builtin_return_address(0))
#else
#define HOLDFAST_OPERATOR
#define HOLDFAST_ALLOCATES
#endif

thread_local HeapMeter* current_meter = nullptr;

// What glibc's malloc takes for a block: 8 bytes more, in sixteens. Known
// without a look at the block, which would cost as much as the rest of the
// counting.
constexpr int64_t BlockBytes(std::size_t bytes) {
  return std::max<int64_t>((static_cast<int64_t>(bytes) + 8 + 15) & ~15, 32);
}

// Who is short of memory takes back what others keep this often at most.
constexpr absl::Duration kReclaimEvery = absl::Milliseconds(100);

HOLDFAST_OPERATOR void* New(std::size_t bytes) {
  HOLDFAST_ALLOCATES;
  void* block = std::malloc(bytes == 0 ? 1 : bytes);
  if (ABSL_PREDICT_FALSE(block == nullptr)) throw std::bad_alloc();
  HeapMeter::CountTaken(BlockBytes(bytes));
  return block;
}

HOLDFAST_OPERATOR void* NewAligned(std::size_t bytes,
                                   std::align_val_t alignment) {
  HOLDFAST_ALLOCATES;
  const std::size_t step = static_cast<std::size_t>(alignment);
  void* block = std::aligned_alloc(
      step, (std::max<std::size_t>(bytes, 1) + step - 1) / step * step);
  if (ABSL_PREDICT_FALSE(block == nullptr)) throw std::bad_alloc();
  HeapMeter::CountTaken(BlockBytes(bytes));
  return block;
}

// From here on malloc maps each block by itself, and free unmaps it: some
// microseconds for each 100 KiB.
constexpr std::size_t kMapped = std::size_t{32} << 20;

void Free(void* block, std::size_t bytes) {
  Aside* const aside = bytes < kMapped ? nullptr : NoWait::aside();
  if (ABSL_PREDICT_TRUE(aside == nullptr)) return std::free(block);
  try {
    aside->Post([block] { std::free(block); });
  } catch (const std::bad_alloc&) {
    std::free(block);
  }
}

HOLDFAST_OPERATOR void Delete(void* block, std::size_t bytes) {
  HOLDFAST_ALLOCATES;
  if (block == nullptr) return;
  HeapMeter::CountTaken(-BlockBytes(bytes));
  Free(block, bytes);
}

// Code that does not tell the size.
HOLDFAST_OPERATOR void Delete(void* block) {
  HOLDFAST_ALLOCATES;
  if (block == nullptr) return;
  const std::size_t bytes = malloc_usable_size(block);
  HeapMeter::CountTaken(-static_cast<int64_t>(bytes) - 8);
  Free(block, bytes);
}

std::string Size(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / 1048576.0);
}

}  // namespace

void HeapCharge::Charge(int64_t held) {
  const int64_t charge = std::max<int64_t>(held, 0) / kStep * kStep;
  if (charge > charged_) {
    account_->Take(charge - charged_);
  } else if (charge < charged_) {
    account_->Return(charged_ - charge);
    freed_.fetch_add(charged_ - charge, std::memory_order_relaxed);
  }
  charged_ = charge;
}

HeapMeter* HeapMeter::Current() { return current_meter; }

HeapMeter::Scope::Scope(HeapMeter* meter)
    : meter_(meter),
      outer_(std::exchange(current_meter, meter)),
      start_(thread_bytes_) {}

HeapMeter::Scope::~Scope() {
  current_meter = outer_;
  const int64_t taken = thread_bytes_ - start_;
  thread_bytes_ = start_;
  meter_->Add(taken);
}

HeapMeter::Beside::Beside(HeapMeter* meter)
    : meter_(meter), start_(thread_bytes_) {}
HeapMeter::Beside::~Beside() {
  meter_->beside_.fetch_add(thread_bytes_ - start_, std::memory_order_relaxed);
  thread_bytes_ = start_;
}

void HeapMeter::Add(int64_t taken) {
  if (beside_.load(std::memory_order_relaxed) != 0) {
    taken += beside_.exchange(0, std::memory_order_relaxed);
  }
  // What others took for it, and it gave back, is no credit.
  const int64_t held = std::max<int64_t>(bytes() + taken, 0);
  bytes_.store(held, std::memory_order_relaxed);
  if (charge_.Settle(held) || !refusal_.ok()) Judge();
}

void HeapMeter::Judge() {
  const int64_t held = bytes();
  const int64_t most = static_cast<int64_t>(limit_bytes_.load());
  absl::Status judged;
  if (held > kAlways) {
    if (most != 0 && held > most) {
      judged = absl::ResourceExhaustedError(absl::StrCat(
          "the session's limit is reached: ", Size(held), " of ", Size(most)));
    } else {
      judged = account()->CheckRoom(0);
      if (!judged.ok() && SteadyNow() >= reclaim_again_) {
        account()->ledger()->Reclaim(account().get(), 0);
        reclaim_again_ = SteadyNow() + kReclaimEvery;
        judged = account()->CheckRoom(0);
      }
    }
  }
  if (judged.ok()) {
    refusal_ = absl::OkStatus();
    return;
  }
  if (refusal_.ok()) refused_at_ = held;
  refusal_ = absl::ResourceExhaustedError(absl::StrCat(
      "out of memory: the session's handles, graph and results take ",
      Size(held), " of the daemon's heap, and ", judged.message(),
      ". Delete tensors; where a loss is added up, add loss.item() or "
      "loss.detach()"));
}

}  // namespace holdfast

// ---- the process's

void* operator new(std::size_t bytes) { return holdfast::New(bytes); }
void* operator new[](std::size_t bytes) { return holdfast::New(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return holdfast::NewAligned(bytes, alignment);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return holdfast::NewAligned(bytes, alignment);
}
void operator delete(void* block) noexcept { holdfast::Delete(block); }
void operator delete[](void* block) noexcept { holdfast::Delete(block); }
void operator delete(void* block, std::size_t bytes) noexcept {
  holdfast::Delete(block, bytes);
}
void operator delete[](void* block, std::size_t bytes) noexcept {
  holdfast::Delete(block, bytes);
}
void operator delete(void* block, std::align_val_t) noexcept {
  holdfast::Delete(block);
}
void operator delete[](void* block, std::align_val_t) noexcept {
  holdfast::Delete(block);
}
void operator delete(void* block, std::size_t bytes,
                     std::align_val_t) noexcept {
  holdfast::Delete(block, bytes);
}
void operator delete[](void* block, std::size_t bytes,
                       std::align_val_t) noexcept {
  holdfast::Delete(block, bytes);
}
