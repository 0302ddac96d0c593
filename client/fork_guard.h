// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Notices fork(), since a child must not use its parent's session: the threads
// are gone and both would write the same ring. Costs one load per look.
// Thread-safety: all functions from any thread.
#ifndef HOLDFAST_CLIENT_FORK_GUARD_H_
#define HOLDFAST_CLIENT_FORK_GUARD_H_

#include <atomic>
#include <cstdint>

namespace holdfast::client {

// Forks between this process and the first one that loaded the library.
extern std::atomic<uint32_t> fork_generation;

inline uint32_t ForkGeneration() {
  return fork_generation.load(std::memory_order_relaxed);
}

// A descriptor that children close at once, so that the daemon sees the end of
// this process even if a child outlives it. Best effort beyond 64.
void CloseInChildren(int fd);
void ForgetInChildren(int fd);

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_FORK_GUARD_H_
