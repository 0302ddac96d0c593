// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ScratchCharge: whose account the scratch memory of a running kernel is on. An
// interface, since a device's library has a CPU device of its own and no
// accounts. Thread-safety: of the thread that launches.
#ifndef HOLDFAST_SERVER_EXEC_SCRATCH_CHARGE_H_
#define HOLDFAST_SERVER_EXEC_SCRATCH_CHARGE_H_

#include <cstddef>

#include "absl/status/status.h"

namespace holdfast {

class ScratchCharge {
 public:
  virtual ~ScratchCharge() = default;
  // So many bytes more; ResourceExhausted: they must not be used.
  virtual absl::Status Add(size_t bytes) = 0;
  virtual void Clear() = 0;  // the kernel is done
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_SCRATCH_CHARGE_H_
