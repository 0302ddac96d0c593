// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// GuessBackOff: makes those who try credentials wait. The first few mistakes of
// an origin cost nothing; then each doubles the time in which nothing that
// comes from there is looked at, a minute at most. It is forgotten after a
// while without mistakes. Thread-safety: all methods from any thread.
#ifndef HOLDFAST_SERVER_TRUST_GUESS_BACK_OFF_H_
#define HOLDFAST_SERVER_TRUST_GUESS_BACK_OFF_H_

#include <cstddef>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "proto/steady_time.h"

namespace holdfast {

class GuessBackOff {
 public:
  static constexpr int kFreeMistakes = 5;
  static constexpr absl::Duration kFirst = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Minutes(1);
  static constexpr absl::Duration kForget = absl::Minutes(10);
  static constexpr size_t kMaxOrigins = 10000;

  // How long the origin still has to wait; zero: its next try is looked at.
  absl::Duration Wait(const std::string& origin, SteadyTime now);
  void Mistake(const std::string& origin, SteadyTime now);
  size_t origins();

 private:
  struct Entry {
    int mistakes = 0;
    SteadyTime until = SteadyTime::Past();
    SteadyTime latest = SteadyTime::Past();
  };
  // Makes room: what is over, else the oldest. REQUIRES: mutex_ held.
  void Trim(SteadyTime now);

  std::mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRUST_GUESS_BACK_OFF_H_
