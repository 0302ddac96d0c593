// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

namespace holdfast::client {
namespace {

constexpr int kSlots = 64;
// Descriptor + 1; 0: free. Only async-signal-safe code touches them in a child.
std::atomic<int> slots[kSlots];

void InChild() {
  fork_generation.fetch_add(1, std::memory_order_relaxed);
  for (std::atomic<int>& slot : slots) {
    const int fd = slot.exchange(0) - 1;
    if (fd >= 0) close(fd);
  }
}

[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, &InChild);

}  // namespace

std::atomic<uint32_t> fork_generation{0};

void CloseInChildren(int fd) {
  for (std::atomic<int>& slot : slots) {
    int expected = 0;
    if (slot.compare_exchange_strong(expected, fd + 1)) return;
  }
}

void ForgetInChildren(int fd) {
  for (std::atomic<int>& slot : slots) {
    int expected = fd + 1;
    if (slot.compare_exchange_strong(expected, 0)) return;
  }
}

}  // namespace holdfast::client
