// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What happened to the daemon's sessions since it started: counts that outlive
// the sessions.
#ifndef HOLDFAST_SERVER_SESSION_SESSION_TOTALS_H_
#define HOLDFAST_SERVER_SESSION_SESSION_TOTALS_H_

#include <cstdint>
#include <map>

#include "absl/status/status.h"

namespace holdfast {

struct SessionTotals {
  uint64_t opened = 0;
  uint64_t attached = 0;  // taken over by a new client
  uint64_t resumed = 0;   // by the same client, after a cut
  uint64_t cut = 0;       // connections lost
  uint64_t detached = 0;
  std::map<absl::StatusCode, uint64_t> ended;    // by the reason's code
  std::map<absl::StatusCode, uint64_t> refused;  // Hello, by the error's code
  // Of the sessions that have ended.
  uint64_t ended_ops = 0;
  double ended_device_seconds = 0;
  uint64_t ended_refused_allocations = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_SESSION_SESSION_TOTALS_H_
