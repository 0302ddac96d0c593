// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Time that somebody who sets the clock does not move: for deadlines, grace
// periods and ages. Dates, and what a certificate or token says, are
// absl::Now().
#ifndef HOLDFAST_PROTO_STEADY_TIME_H_
#define HOLDFAST_PROTO_STEADY_TIME_H_

#include "absl/time/time.h"
#include "proto/profile_clock.h"

namespace holdfast {

// Good for comparing with others of its kind only: it begins when the machine
// does, and does not count while the machine sleeps.
inline absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::Nanoseconds(ProfileNow());
}

}  // namespace holdfast

#endif  // HOLDFAST_PROTO_STEADY_TIME_H_
