// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ReactionOrder: gRPC runs the reactions of a call that starts its operations
// one at a time, one after the other, on any of its threads. What orders them
// is inside the library, where ThreadSanitizer sees nothing, so a reaction
// that touches unguarded members says it here. Without the sanitizer: nothing.
#ifndef HOLDFAST_SERVER_TRANSPORT_REACTION_ORDER_H_
#define HOLDFAST_SERVER_TRANSPORT_REACTION_ORDER_H_

#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace holdfast {

// After all earlier reactions of `call`.
inline void FollowReactions([[maybe_unused]] void* call) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(call);
#endif
}

// Before all reactions that come of what is started next.
inline void PrecedeReactions([[maybe_unused]] void* call) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(call);
#endif
}

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_REACTION_ORDER_H_
