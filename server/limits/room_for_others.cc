// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/limits/room_for_others.h"

#include <sys/resource.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

uint64_t SystemsLimit() {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return std::min<uint64_t>(limit.rlim_cur, kMost);
}

}  // namespace

bool UserShares::Take(const std::string& user, uint64_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = own_.find(user);
  const uint64_t own = it == own_.end() ? 0 : it->second;
  if (!RoomForOthers(own + count - 1, all_ + count - 1, most_)) return false;
  all_ += count;
  own_[user] += count;
  return true;
}

void UserShares::Return(const std::string& user, uint64_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  all_ -= count;
  const auto it = own_.find(user);
  it->second -= count;
  if (it->second == 0) own_.erase(it);
}

uint64_t UserShares::of(const std::string& user) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = own_.find(user);
  return it == own_.end() ? 0 : it->second;
}

uint64_t ReservedDescriptors() {
  constexpr uint64_t kReserved = 512;
  static const uint64_t reserved =
      std::min<uint64_t>(kReserved, SystemsLimit() / 2);
  return reserved;
}

UserShares& DescriptorShares() {
  // Never destroyed: allocators may give segments back until the process ends.
  static auto& shares = *new UserShares(SystemsLimit() - ReservedDescriptors());
  return shares;
}

absl::Status TakeDescriptors(const std::string& user, uint64_t count) {
  UserShares& shares = DescriptorShares();
  if (shares.Take(user, count)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the daemon's users have ", shares.most(),
      " descriptors together (LimitNOFILE=, ulimit -n), and those that are "
      "left are for others: ",
      user, " has ", shares.of(user), ". Close some sessions"));
}

}  // namespace holdfast
