// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/waits/system_calls.h"

#if HOLDFAST_TRAPS

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cstddef>
#include <initializer_list>
#include <vector>

// int64_t holdfast_call(int64_t number, const uint64_t arguments[6]), whose
// call the filter knows by where it returns to.
#if defined(__x86_64__)
asm(R"(
    .pushsection .text
    .hidden holdfast_call, holdfast_call_returns
    .globl holdfast_call, holdfast_call_returns
    .type holdfast_call, @function
holdfast_call:
    .cfi_startproc
    movq %rdi, %rax
    movq %rsi, %r11
    movq (%r11), %rdi
    movq 8(%r11), %rsi
    movq 16(%r11), %rdx
    movq 24(%r11), %r10
    movq 32(%r11), %r8
    movq 40(%r11), %r9
    syscall
holdfast_call_returns:
    ret
    .cfi_endproc
    .size holdfast_call, . - holdfast_call
    .popsection
)");
#else
asm(R"(
    .pushsection .text
    .hidden holdfast_call
    .hidden holdfast_call_returns
    .globl holdfast_call
    .globl holdfast_call_returns
    .type holdfast_call, @function
holdfast_call:
    .cfi_startproc
    mov x8, x0
    mov x9, x1
    ldp x0, x1, [x9]
    ldp x2, x3, [x9, 16]
    ldp x4, x5, [x9, 32]
    svc 0
holdfast_call_returns:
    ret
    .cfi_endproc
    .size holdfast_call, . - holdfast_call
    .popsection
)");
#endif
extern "C" {
int64_t holdfast_call(int64_t number, const uint64_t* arguments);
extern char holdfast_call_returns;
}

namespace holdfast::waits {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
#endif

// More at a time takes milliseconds.
constexpr uint32_t kMostBytes = 64 << 20;

class Filter {
 public:
  Filter() {
    Load(offsetof(seccomp_data, arch));
    // Another machine's numbers mean other calls; nobody makes any.
    IfNot(kMachine, SECCOMP_RET_ALLOW);
    // Our own way past: a call made at that one place.
    const auto pass = reinterpret_cast<uint64_t>(&holdfast_call_returns);
    Load(offsetof(seccomp_data, instruction_pointer));
    Add(BPF_JMP | BPF_JEQ | BPF_K, Lower(pass), 0, 3);
    Load(offsetof(seccomp_data, instruction_pointer) + 4);
    If(static_cast<uint32_t>(pass >> 32), SECCOMP_RET_ALLOW);
    Number();
  }
  void Allow(int call) { If(call, SECCOMP_RET_ALLOW); }
  // Allowed where the argument has all of `set` and none of `clear`.
  void AllowFlags(int call, int argument, uint32_t set, uint32_t clear) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 5);
    Load(Low(argument));
    Add(BPF_ALU | BPF_AND | BPF_K, set | clear);
    If(set, SECCOMP_RET_ALLOW);
    Return(SECCOMP_RET_TRAP);
  }
  // Allowed where the argument is at most kMostBytes.
  void AllowBytes(int call, int argument) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 7);
    Load(High(argument));
    IfNot(0, SECCOMP_RET_TRAP);
    Load(Low(argument));
    Add(BPF_JMP | BPF_JGT | BPF_K, kMostBytes, 1, 0);
    Return(SECCOMP_RET_ALLOW);
    Return(SECCOMP_RET_TRAP);
  }
  bool Install() {
    Return(SECCOMP_RET_TRAP);
    sock_fprog program = {static_cast<unsigned short>(code_.size()),  // NOLINT
                          code_.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }

 private:
  static constexpr uint32_t Lower(uint64_t value) {
    return static_cast<uint32_t>(value);
  }
  static uint32_t Low(int argument) {  // little-endian
    return offsetof(seccomp_data, args) + 8 * argument;
  }
  static uint32_t High(int argument) { return Low(argument) + 4; }

  void Add(int code, uint32_t k, int jump_true = 0, int jump_false = 0) {
    code_.push_back({static_cast<uint16_t>(code),
                     static_cast<uint8_t>(jump_true),
                     static_cast<uint8_t>(jump_false), k});
  }
  void Load(uint32_t offset) { Add(BPF_LD | BPF_W | BPF_ABS, offset); }
  void Number() { Load(offsetof(seccomp_data, nr)); }
  void Return(uint32_t action) { Add(BPF_RET | BPF_K, action); }
  void If(uint32_t value, uint32_t action) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    Return(action);
  }
  void IfNot(uint32_t value, uint32_t action) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
    Return(action);
  }

  std::vector<sock_filter> code_;
};

}  // namespace

bool InstallFilter() {
  Filter filter;
  for (const int call :
       {SYS_futex, SYS_sched_yield, SYS_clock_gettime, SYS_gettimeofday,
        // The sleep for doorbells, which ends when anything is posted.
        SYS_epoll_pwait, SYS_epoll_pwait2, SYS_epoll_ctl,
        // Heap; of what is mapped only where pages are, see below.
        SYS_brk, SYS_mremap, SYS_mbind, SYS_membarrier,
        // Threads of a team, their beginning and their end.
        SYS_clone, SYS_clone3, SYS_set_robust_list, SYS_rseq, SYS_exit,
        SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_sched_getparam,
        SYS_sched_getscheduler, SYS_prctl, SYS_gettid, SYS_getpid, SYS_getcpu,
        SYS_getrandom,
        // Signals: the watchdog asks for a stack.
        SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_sigaltstack,
        SYS_tgkill, SYS_exit_group,
        // Descriptors of sockets and memory; neither reads nor writes.
        SYS_fcntl, SYS_shutdown, SYS_setsockopt, SYS_getsockopt,
        SYS_getsockname, SYS_getpeername}) {
    filter.Allow(call);
  }
#if defined(__x86_64__)
  filter.Allow(SYS_epoll_wait);
  filter.Allow(SYS_time);
#endif
  filter.AllowFlags(SYS_mmap, 3, MAP_ANONYMOUS, MAP_POPULATE);
  filter.AllowFlags(SYS_sendto, 3, MSG_DONTWAIT, 0);
  filter.AllowBytes(SYS_munmap, 1);
  filter.AllowBytes(SYS_madvise, 1);
  filter.AllowBytes(SYS_mprotect, 1);
  return filter.Install();
}

int64_t MakeCall(const SystemCall& call) {
  return holdfast_call(call.number, call.arguments);
}

const char* NameOf(int number) {
  switch (number) {
#define HOLDFAST_NAME(name) \
  case SYS_##name:          \
    return #name
    HOLDFAST_NAME(read);
    HOLDFAST_NAME(readv);
    HOLDFAST_NAME(pread64);
    HOLDFAST_NAME(write);
    HOLDFAST_NAME(pwrite64);
    HOLDFAST_NAME(writev);
    HOLDFAST_NAME(openat);
    HOLDFAST_NAME(close);
    HOLDFAST_NAME(newfstatat);
    HOLDFAST_NAME(fsync);
    HOLDFAST_NAME(fdatasync);
    HOLDFAST_NAME(ftruncate);
    HOLDFAST_NAME(fallocate);
    HOLDFAST_NAME(renameat);
    HOLDFAST_NAME(unlinkat);
    HOLDFAST_NAME(memfd_create);
    HOLDFAST_NAME(mmap);
    HOLDFAST_NAME(munmap);
    HOLDFAST_NAME(madvise);
    HOLDFAST_NAME(mprotect);
    HOLDFAST_NAME(ppoll);
    HOLDFAST_NAME(nanosleep);
    HOLDFAST_NAME(clock_nanosleep);
    HOLDFAST_NAME(sendto);
    HOLDFAST_NAME(sendmsg);
    HOLDFAST_NAME(recvfrom);
    HOLDFAST_NAME(recvmsg);
    HOLDFAST_NAME(socket);
    HOLDFAST_NAME(connect);
    HOLDFAST_NAME(ioctl);
#if defined(__x86_64__)
    HOLDFAST_NAME(open);
    HOLDFAST_NAME(poll);
    HOLDFAST_NAME(stat);
    HOLDFAST_NAME(unlink);
#endif
#undef HOLDFAST_NAME
    default:
      return nullptr;
  }
}

}  // namespace holdfast::waits

#endif  // HOLDFAST_TRAPS
