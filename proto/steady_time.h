// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Time that does not move when somebody sets the clock: for deadlines, grace
// periods and ages. Dates, and what a certificate or token says, are
// absl::Time.
#ifndef HOLDFAST_PROTO_STEADY_TIME_H_
#define HOLDFAST_PROTO_STEADY_TIME_H_

#include <chrono>
#include <cstdint>

#include "absl/time/time.h"
#include "proto/profile_clock.h"

namespace holdfast {

// A moment of CLOCK_MONOTONIC, which begins when the machine does and does not
// count while the machine sleeps. A type of its own: a wait on the system clock
// would take such a moment for one that is long past, and spin. Hence it
// converts to nothing but a std::chrono::steady_clock::time_point.
// Saturates at both ends, as absl::Time does.
class SteadyTime {
 public:
  constexpr SteadyTime() = default;  // when the machine began
  static constexpr SteadyTime Past() {
    return SteadyTime(-absl::InfiniteDuration());
  }
  static constexpr SteadyTime Future() {
    return SteadyTime(absl::InfiniteDuration());
  }
  static SteadyTime FromNanoseconds(int64_t since_boot) {
    return SteadyTime(absl::Nanoseconds(since_boot));
  }
  static SteadyTime FromMicros(int64_t since_boot) {
    return SteadyTime(absl::Microseconds(since_boot));
  }

  int64_t ToMicros() const { return absl::ToInt64Microseconds(since_boot_); }
  // For std::condition_variable::wait_until and its like.
  std::chrono::steady_clock::time_point ToChrono() const {
    using Clock = std::chrono::steady_clock;
    return Clock::time_point(std::chrono::duration_cast<Clock::duration>(
        absl::ToChronoNanoseconds(since_boot_)));
  }

  SteadyTime& operator+=(absl::Duration d) {
    since_boot_ += d;
    return *this;
  }
  friend SteadyTime operator+(SteadyTime t, absl::Duration d) { return t += d; }
  friend SteadyTime operator-(SteadyTime t, absl::Duration d) {
    return t += -d;
  }
  friend absl::Duration operator-(SteadyTime a, SteadyTime b) {
    return a.since_boot_ - b.since_boot_;
  }
  friend bool operator==(SteadyTime a, SteadyTime b) {
    return a.since_boot_ == b.since_boot_;
  }
  friend bool operator!=(SteadyTime a, SteadyTime b) { return !(a == b); }
  friend bool operator<(SteadyTime a, SteadyTime b) {
    return a.since_boot_ < b.since_boot_;
  }
  friend bool operator>(SteadyTime a, SteadyTime b) { return b < a; }
  friend bool operator<=(SteadyTime a, SteadyTime b) { return !(b < a); }
  friend bool operator>=(SteadyTime a, SteadyTime b) { return !(a < b); }

 private:
  explicit constexpr SteadyTime(absl::Duration since_boot)
      : since_boot_(since_boot) {}
  absl::Duration since_boot_;
};

inline SteadyTime SteadyNow() {
  return SteadyTime::FromNanoseconds(ProfileNow());
}

}  // namespace holdfast

#endif  // HOLDFAST_PROTO_STEADY_TIME_H_
