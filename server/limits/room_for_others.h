// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// RoomForOthers: how what all users share is kept from being used up by one.
// UserShares: who has how many of something. DescriptorShares: of the process's
// descriptors. Thread-safety: all functions and methods from any thread.
#ifndef HOLDFAST_SERVER_LIMITS_ROOM_FOR_OTHERS_H_
#define HOLDFAST_SERVER_LIMITS_ROOM_FOR_OTHERS_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

namespace holdfast {

// Whether a user who has `own` of the `all` that are taken may have one more,
// where there are `most`. Each may have nine tenths of what the others leave:
// the first who takes all that he can leaves a tenth, the second a tenth of
// that, and who has nothing gets one while there is any.
inline bool RoomForOthers(uint64_t own, uint64_t all, uint64_t most) {
  constexpr uint64_t kForEachThatIsFree = 9;
  return all < most && own < kForEachThatIsFree * (most - all);
}

class UserShares {
 public:
  explicit UserShares(uint64_t most) : most_(most) {}

  // False, and nothing is taken: the rest is for others.
  bool Take(const std::string& user, uint64_t count = 1);
  void Return(const std::string& user, uint64_t count = 1);
  uint64_t of(const std::string& user);
  uint64_t most() const { return most_; }

 private:
  const uint64_t most_;
  std::mutex mutex_;  // guards what follows
  uint64_t all_ = 0;
  absl::flat_hash_map<std::string, uint64_t> own_;
};

// Of those that the system gives the process, less ReservedDescriptors. The
// system's limit is read at the first call.
UserShares& DescriptorShares();
// For the daemon itself, for who has not shown yet who it is, and for HTTP.
uint64_t ReservedDescriptors();
// Takes so many for the user; an error says what to do.
absl::Status TakeDescriptors(const std::string& user, uint64_t count);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LIMITS_ROOM_FOR_OTHERS_H_
