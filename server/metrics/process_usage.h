// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the process takes of its machine, from /proc. Thread-safety: any thread.
#ifndef HOLDFAST_SERVER_METRICS_PROCESS_USAGE_H_
#define HOLDFAST_SERVER_METRICS_PROCESS_USAGE_H_

#include <cstdint>

namespace holdfast {

struct ProcessUsage {
  double cpu_seconds = 0;  // user and system
  uint64_t resident_bytes = 0;
  uint64_t virtual_bytes = 0;
  uint64_t open_descriptors = 0;
  uint64_t max_descriptors = 0;
  uint64_t threads = 0;
};

// Zeros where /proc does not tell.
ProcessUsage ReadProcessUsage();

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_METRICS_PROCESS_USAGE_H_
