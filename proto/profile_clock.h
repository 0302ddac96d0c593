// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The clock of profiles: CLOCK_MONOTONIC, one clock for all processes of a
// machine.
#ifndef HOLDFAST_PROTO_PROFILE_CLOCK_H_
#define HOLDFAST_PROTO_PROFILE_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace holdfast {

// Nanoseconds. Never 0.
inline int64_t ProfileNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace holdfast

#endif  // HOLDFAST_PROTO_PROFILE_CLOCK_H_
