// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/waits/ranked_mutex.h"

#include "absl/strings/str_cat.h"

namespace holdfast::waits {
namespace {

struct RankRow {
  const char* name;
  bool waits;
};
constexpr RankRow kRanks[] = {
#define HOLDFAST_RANK(name, waits) {#name, waits},
    HOLDFAST_LOCK_RANKS(HOLDFAST_RANK)
#undef HOLDFAST_RANK
};

const RankRow& Row(LockRank rank) { return kRanks[static_cast<int>(rank)]; }

struct Held {
  const void* mutex;
  LockRank rank;
};
// Nobody holds many. No heap, which sessions are charged for.
constexpr int kMost = 16;
thread_local Held held[kMost];
thread_local int num_held = 0;

}  // namespace

void NoteLock(const void* mutex, LockRank rank) {
  if (NoWait::active() && Row(rank).waits) {
    Report(absl::StrCat("a thread that must not wait took the lock '",
                        Row(rank).name, "', which is held across waits"));
  }
  for (int i = 0; i < num_held; ++i) {
    if (held[i].rank < rank) continue;
    Report(absl::StrCat("the lock '", Row(rank).name,
                        "' was taken by a thread that has '",
                        Row(held[i].rank).name,
                        "'; their order is in server/waits/ranked_mutex.h"));
  }
  if (num_held == kMost) return Report("a thread holds too many locks");
  held[num_held++] = {mutex, rank};
}

void NoteUnlock(const void* mutex) {
  for (int i = num_held - 1; i >= 0; --i) {
    if (held[i].mutex != mutex) continue;
    for (int j = i + 1; j < num_held; ++j) held[j - 1] = held[j];
    --num_held;
    return;
  }
}

void CheckCondition(const void* mutex) {
  if (NoWait::active()) Report("a thread that must not wait waits for another");
  for (int i = 0; i < num_held; ++i) {
    if (held[i].mutex == mutex || Row(held[i].rank).waits) continue;
    Report(absl::StrCat("a thread waits for another with the lock '",
                        Row(held[i].rank).name,
                        "', which one that must not wait may want"));
  }
}

std::string HeldInNoWaits() {
  for (int i = 0; i < num_held; ++i) {
    if (!Row(held[i].rank).waits) return Row(held[i].rank).name;
  }
  return "";
}

}  // namespace holdfast::waits
