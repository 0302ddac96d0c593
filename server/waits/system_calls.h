// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The system's side of CallTrap (call_trap.h): which of a thread's system calls
// return at once by their numbers and arguments, a filter that stops the others
// (seccomp), and a way past it.
#ifndef HOLDFAST_SERVER_WAITS_SYSTEM_CALLS_H_
#define HOLDFAST_SERVER_WAITS_SYSTEM_CALLS_H_

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOLDFAST_TRAPS 0
#elif defined(__x86_64__) || defined(__aarch64__)
#define HOLDFAST_TRAPS 1
#else
#define HOLDFAST_TRAPS 0
#endif

#if HOLDFAST_TRAPS

namespace holdfast::waits {

struct SystemCall {
  int number;
  uint64_t arguments[6];
};

// For this thread, and those that it makes, for good: SIGSYS in place of a call
// that is not known to return at once. False: errno says why.
bool InstallFilter();

// Makes the call, which no filter of ours stops. The result, or -errno. Safe in
// a signal handler.
int64_t MakeCall(const SystemCall& call);

// "openat", or null. Safe in a signal handler.
const char* NameOf(int number);

}  // namespace holdfast::waits

#endif  // HOLDFAST_TRAPS

#endif  // HOLDFAST_SERVER_WAITS_SYSTEM_CALLS_H_
