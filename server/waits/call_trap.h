// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// CallTrap: where waits are checked (wait_reports.h), the system itself looks
// at what the worker calls (seccomp): whatever is not known to return at once
// is told with the call's name and the worker's stack, and then made.
//
// Let through: futexes (whose locks ranked_mutex.h looks after), the sleep for
// doorbells, what the C library and OpenMP's threads need for memory and
// threads, in pieces of at most 64 MiB and never of files, reads and writes of
// descriptors in their non-blocking mode, and sleeps of at most a millisecond,
// which gRPC's locks begin with. Thread-safety: any thread.
#ifndef HOLDFAST_SERVER_WAITS_CALL_TRAP_H_
#define HOLDFAST_SERVER_WAITS_CALL_TRAP_H_

#include "absl/status/status.h"

namespace holdfast {

// Before TrapCalls, by a thread that is not trapped.
void PrepareCallTrap();

// From now on for this thread, and threads that it makes. Unimplemented: under
// sanitizers, on other machines than x86-64 and arm64, and where a sandbox
// allows no filters.
absl::Status TrapCalls();

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_WAITS_CALL_TRAP_H_
