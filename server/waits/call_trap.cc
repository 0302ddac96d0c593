// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/waits/call_trap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <ucontext.h>

#include <cstdint>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "server/waits/system_calls.h"
#include "server/waits/wait_reports.h"

namespace holdfast {

#if HOLDFAST_TRAPS
namespace {

using waits::MakeCall;
using waits::SystemCall;

// Threads that a trapped one makes have its filter. They are libraries' own,
// and nobody waits for them but in a futex.
thread_local bool trapped = false;

// The C library reads this once, when its heap first shrinks; no disk has it.
constexpr char kOvercommit[] = "/proc/sys/vm/overcommit_memory";

bool OpensOvercommit(const SystemCall& call) {
  return strcmp(reinterpret_cast<const char*>(call.arguments[1]),
                kOvercommit) == 0;
}

bool IsOfProc(int fd) {
  struct statfs info = {};
  const SystemCall ask = {
      SYS_fstatfs,
      {static_cast<uint64_t>(fd), reinterpret_cast<uint64_t>(&info)}};
  return MakeCall(ask) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

// Of a kind whose last close ends nothing that takes long. The structure is the
// system's, which fstat fills.
bool IsSocket(int fd) {
  struct stat info = {};
  const SystemCall ask = {
      SYS_fstat,
      {static_cast<uint64_t>(fd), reinterpret_cast<uint64_t>(&info)}};
  return MakeCall(ask) == 0 && S_ISSOCK(info.st_mode);
}

bool RefusesToWait(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

// gRPC's locks are Abseil's, which sleep for some microseconds before they wait
// for their owners with a futex.
bool IsShort(const SystemCall& call) {
  const auto* const time = reinterpret_cast<const timespec*>(call.arguments[2]);
  return call.arguments[1] == 0 && time->tv_sec == 0 &&
         time->tv_nsec <= 1000000;
}

// What the filter could not see in numbers.
bool WaitsForNothing(const SystemCall& call) {
  const int fd = static_cast<int>(call.arguments[0]);
  switch (call.number) {
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_write:
    case SYS_writev:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
      return RefusesToWait(fd);
    case SYS_read:
      return RefusesToWait(fd) || IsOfProc(fd);
    case SYS_close:
      return IsSocket(fd) || IsOfProc(fd);
    case SYS_openat:
      return OpensOvercommit(call);
    case SYS_clock_nanosleep:
      return IsShort(call);
#if defined(__x86_64__)
    case SYS_poll:
      return call.arguments[2] == 0;
#endif
    default:
      return false;
  }
}

void Tell(const SystemCall& call) {
  const char* const name = waits::NameOf(call.number);
  char number[16];
  snprintf(number, sizeof number, "number %d", call.number);
  const uint64_t* const a = call.arguments;
  char text[256];
  // snprintf of numbers and plain text takes no heap and no lock.
  snprintf(text, sizeof text,
           "the worker made a system call that may wait: "
           "%s(0x%lx, 0x%lx, 0x%lx, 0x%lx, 0x%lx, 0x%lx)",
           name == nullptr ? number : name, static_cast<unsigned long>(a[0]),
           static_cast<unsigned long>(a[1]), static_cast<unsigned long>(a[2]),
           static_cast<unsigned long>(a[3]), static_cast<unsigned long>(a[4]),
           static_cast<unsigned long>(a[5]));
  waits::ReportHere(text);
}

void OnTrap(int, siginfo_t* info, void* context) {
  const int saved = errno;
  mcontext_t& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  SystemCall call = {};
  call.number = info->si_syscall;
#if defined(__x86_64__)
  constexpr int kArguments[] = {REG_RDI, REG_RSI, REG_RDX,
                                REG_R10, REG_R8,  REG_R9};
  for (int i = 0; i < 6; ++i) {
    call.arguments[i] = static_cast<uint64_t>(machine.gregs[kArguments[i]]);
  }
  auto& result = machine.gregs[REG_RAX];
#else
  for (int i = 0; i < 6; ++i) call.arguments[i] = machine.regs[i];
  auto& result = machine.regs[0];
#endif
  if (trapped && !WaitsForNothing(call)) Tell(call);
  result =
      static_cast<std::remove_reference_t<decltype(result)>>(MakeCall(call));
  errno = saved;
}

}  // namespace

void PrepareCallTrap() {
  waits::PrepareReports();
  struct sigaction action = {};
  action.sa_sigaction = &OnTrap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSYS, &action, nullptr);
}

absl::Status TrapCalls() {
  if (waits::InstallFilter()) {
    trapped = true;
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat("the system allows no filter: ", strerror(errno)));
}

#else

void PrepareCallTrap() {}

absl::Status TrapCalls() {
  return absl::UnimplementedError("not in this build");
}

#endif

}  // namespace holdfast
