// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// UserLimits: what each user may take: the configuration's, and above it what
// an admin has set since the start.
// Thread-safety: all methods from any thread.
#ifndef HOLDFAST_SERVER_LIMITS_USER_LIMITS_H_
#define HOLDFAST_SERVER_LIMITS_USER_LIMITS_H_

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "server/limits/config_file.h"

namespace holdfast {

class UserLimits {
 public:
  // `base`: what holds where nobody says anything (the flags).
  explicit UserLimits(v1::Limits base) : base_(std::move(base)) {}

  // Every field that limits something is there. user "": the default.
  v1::Limits Of(const std::string& user);
  bool IsAdmin(const std::string& user);

  void Configure(Configuration configuration);
  // Sets the fields that are there; `reset` drops what was set before.
  absl::Status Set(const std::string& user, const v1::Limits& limits,
                   bool reset);
  // Users that the configuration or an admin has named.
  std::set<std::string> Named();

 private:
  const v1::Limits base_;
  std::mutex mutex_;  // guards what follows
  Configuration configuration_;
  std::map<std::string, v1::Limits> set_;  // live, by user; "": the default
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LIMITS_USER_LIMITS_H_
