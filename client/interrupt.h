// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a language layer interrupts the waits that it does not see: those for
// room on the way to the daemon (Connection::Send), and for the daemon in an
// upload. And how a session knows that a wait of it was ended by the user
// (Ctrl-C), not by a deadline.
// Thread-safety: any thread.
#ifndef HOLDFAST_CLIENT_INTERRUPT_H_
#define HOLDFAST_CLIENT_INTERRUPT_H_

#include <atomic>
#include <cstdint>

namespace holdfast::client {

// Whether the user wants the calling thread back; null: nobody asks. With
// `locked` it is called with locks of the session held, so it waits for nobody.
// It runs no code of the program's and calls no session.
inline std::atomic<bool (*)(bool locked)> g_interrupt_pending{nullptr};

// How often the user did. Counted by the language layer before the predicate of
// the wait says so.
inline std::atomic<uint64_t> g_interrupts{0};

inline bool InterruptPending(bool locked) {
  bool (*const pending)(bool) = g_interrupt_pending.load();
  return pending != nullptr && pending(locked);
}

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_INTERRUPT_H_
