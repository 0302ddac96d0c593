// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a language layer interrupts the waits that it does not see: those for
// room on the way to the daemon (Connection::Send), and for the daemon in an
// upload.
// Thread-safety: any thread.
#ifndef HOLDFAST_CLIENT_INTERRUPT_H_
#define HOLDFAST_CLIENT_INTERRUPT_H_

#include <atomic>

namespace holdfast::client {

// Whether the user wants the calling thread back; null: nobody asks. With
// `locked` it is called with locks of the session held, so it waits for nobody.
// It runs no code of the program's and calls no session.
inline std::atomic<bool (*)(bool locked)> g_interrupt_pending{nullptr};

inline bool InterruptPending(bool locked) {
  bool (*const pending)(bool) = g_interrupt_pending.load();
  return pending != nullptr && pending(locked);
}

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_INTERRUPT_H_
