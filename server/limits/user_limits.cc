// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/limits/user_limits.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace holdfast {

v1::Limits UserLimits::Of(const std::string& user) {
  // A field that is there replaces what was merged before it.
  v1::Limits limits = base_;
  std::lock_guard<std::mutex> lock(mutex_);
  limits.MergeFrom(configuration_.default_limits);
  if (const auto set = set_.find(""); set != set_.end()) {
    limits.MergeFrom(set->second);
  }
  if (user.empty()) return limits;
  const auto own = configuration_.users.find(user);
  if (own != configuration_.users.end()) limits.MergeFrom(own->second);
  if (const auto set = set_.find(user); set != set_.end()) {
    limits.MergeFrom(set->second);
  }
  return limits;
}

bool UserLimits::IsAdmin(const std::string& user) {
  std::lock_guard<std::mutex> lock(mutex_);
  return configuration_.admins.count(user) != 0;
}

void UserLimits::Configure(Configuration configuration) {
  std::lock_guard<std::mutex> lock(mutex_);
  configuration_ = std::move(configuration);
}

absl::Status UserLimits::Set(const std::string& user, const v1::Limits& limits,
                             bool reset) {
  if (absl::Status status = CheckLimits(limits); !status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("[limits] ", status.message(), "."));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (reset) set_.erase(user);
  // Who has nothing of their own is not listed for it.
  if (limits.ByteSizeLong() != 0) set_[user].MergeFrom(limits);
  return absl::OkStatus();
}

std::set<std::string> UserLimits::Named() {
  std::set<std::string> names;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, limits] : configuration_.users) names.insert(name);
  for (const auto& [name, limits] : set_) {
    if (!name.empty()) names.insert(name);
  }
  return names;
}

}  // namespace holdfast
