// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The configuration file (proto/config.proto): reading it, and what is wrong
// with it in words that name the line.
// Thread-safety: functions from any thread.
#ifndef HOLDFAST_SERVER_LIMITS_CONFIG_FILE_H_
#define HOLDFAST_SERVER_LIMITS_CONFIG_FILE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/admin.pb.h"

namespace holdfast {

// What the file says, sizes in bytes.
struct Configuration {
  v1::Limits default_limits;
  std::map<std::string, v1::Limits> users;
  std::set<std::string> admins;
  uint64_t device_bytes = 0;  // 0: not said
};

absl::StatusOr<Configuration> ReadConfiguration(const std::string& path);
absl::StatusOr<Configuration> ParseConfiguration(absl::string_view text,
                                                 const std::string& path);

// "512MiB", "8 GiB", "40GB", "1024".
absl::StatusOr<uint64_t> ParseSize(absl::string_view text);

// OK when every field that is there has a value that makes sense.
absl::Status CheckLimits(const v1::Limits& limits);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LIMITS_CONFIG_FILE_H_
