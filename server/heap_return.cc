// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/heap_return.h"

#include <malloc.h>

#include <cstdint>

#include "absl/time/time.h"
#include "server/memory/heap_meter.h"

namespace holdfast {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(1);
// Less is left to whoever takes memory next.
constexpr int64_t kWorthIt = 32 << 20;
// Whoever takes memory waits meanwhile, some milliseconds for each 100 MiB. So
// a pause in what sessions free is waited for, though not for ever.
constexpr int kMostLooks = 10;

}  // namespace

HeapReturn::HeapReturn() : thread_([this] { Loop(); }) {}

HeapReturn::~HeapReturn() {
  end_.Notify();
  thread_.join();
}

void HeapReturn::Loop() {
  int64_t given_back = 0, last = 0;
  int looks = 0;
  while (!end_.WaitForNotificationWithTimeout(kLookEvery)) {
    const int64_t freed = HeapCharge::Freed();
    const bool pauses = freed == last;
    last = freed;
    if (freed - given_back < kWorthIt) continue;
    if (!pauses && ++looks < kMostLooks) continue;
    malloc_trim(0);
    given_back = freed;
    looks = 0;
  }
}

}  // namespace holdfast
