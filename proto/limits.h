// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Limits of commands, said once for both sides. A command beyond one breaks
// the protocol and ends its session, so the client refuses the call that would
// send it. Those of a daemon without the feature "parts" are in
// client/limits.h.
#ifndef HOLDFAST_PROTO_LIMITS_H_
#define HOLDFAST_PROTO_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace holdfast {

// Inputs of an op; inputs, and outputs, of a function; results of user code.
inline constexpr int kMaxTensorsOfCall = 1 << 20;
// A Command's bytes. What is larger than kPartBytes travels in parts.
inline constexpr size_t kMaxCommandBytes = size_t{48} << 20;
inline constexpr size_t kPartBytes = size_t{512} << 10;
// An Event's bytes over shared memory, likewise.
inline constexpr size_t kEventPartBytes = size_t{128} << 10;
// What a BackwardCall may tell of a function's outputs: it is one event.
inline constexpr size_t kMaxCallBytes = size_t{48} << 20;
// The name of a function of the user's, for messages.
inline constexpr size_t kMaxFunctionNameBytes = 1024;
// Hooks that a tensor has at one time.
inline constexpr size_t kMaxHooks = size_t{1} << 16;
// What a session keeps. A reply to Hello lists all of it.
inline constexpr size_t kMaxKept = size_t{1} << 20;
inline constexpr size_t kMaxKeptNameBytes = 1024;
inline constexpr size_t kMaxKeptListBytes = size_t{48} << 20;

// At most what a KeptTensor or a BackwardCall's gradient takes in a message.
inline constexpr size_t DescriptionBytes(size_t name_bytes, size_t rank) {
  return name_bytes + 64 + 20 * rank;
}

}  // namespace holdfast

#endif  // HOLDFAST_PROTO_LIMITS_H_
