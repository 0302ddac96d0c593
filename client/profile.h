// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A profile of one session: what the client submitted and when, what the
// server executed and when, on one clock.
#ifndef HOLDFAST_CLIENT_PROFILE_H_
#define HOLDFAST_CLIENT_PROFILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ops/tensor_spec.h"

namespace holdfast::client {

struct ProfileOptions {
  bool shapes = false;  // note the shapes of inputs
  // Submissions and executions to keep, each; 0: as many as each side allows.
  uint64_t max_records = 0;
};

enum class ProfiledKind : uint8_t { kOp, kPut, kBackward, kRead, kWait };

// Times are nanoseconds of this machine's monotonic clock.

// A call that sent a command, or waited for a read.
struct Submission {
  ProfiledKind kind = ProfiledKind::kOp;
  bool inplace = false;
  int16_t op = -1;        // OpId of a kOp
  int32_t thread = 0;     // the system's id of the calling thread
  uint64_t sequence = 0;  // the command's number (OpFailure::op_sequence); of
                          // kRead and kWait: the read's
  int64_t begin_ns = 0;
  // Over shared memory the server may have begun the command before.
  int64_t end_ns = 0;
};

// What the server did; see ProfileRecord in the protocol.
struct Execution {
  ProfiledKind kind = ProfiledKind::kOp;
  bool inplace = false;
  bool failed = false;
  bool in_backward = false;
  std::string name;  // of the op, or "put", "backward", "read"
  uint64_t sequence = 0;
  uint64_t forward_sequence = 0;
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int64_t waited_ns = -1;  // in the server's queue; -1: not known
  uint64_t output_bytes = 0;
  std::vector<Dims> input_shapes;
};

// What a device did after the op that asked for it; see DeviceWork in the
// protocol.
struct Kernel {
  std::string name;
  std::string stream;
  uint64_t sequence = 0;
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
};

struct Profile {
  std::vector<Submission> submissions;
  std::vector<Execution> executions;
  std::vector<Kernel> kernels;
  uint64_t dropped_submissions = 0;  // for want of room
  uint64_t dropped_executions = 0;
  uint64_t dropped_kernels = 0;
  // What was added to the server's times, and by how much that may be wrong;
  // both 0 over shared memory.
  int64_t clock_offset_ns = 0;
  int64_t clock_error_ns = 0;
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_PROFILE_H_
