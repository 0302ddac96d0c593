// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/waits/call_trap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/check.h"
#include "server/log/stack_text.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOLDFAST_TRAPS 0
#elif defined(__x86_64__) || defined(__aarch64__)
#define HOLDFAST_TRAPS 1
#else
#define HOLDFAST_TRAPS 0
#endif

namespace holdfast {

#if HOLDFAST_TRAPS
namespace {

#if defined(__x86_64__)
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
#endif

// In a call's sixth argument: the trap itself makes it.
constexpr uint64_t kPass = 0x686f6c6466617374;  // "holdfast"
// More at a time takes milliseconds.
constexpr uint32_t kMostBytes = 64 << 20;

// ---- the filter

class Filter {
 public:
  Filter() {
    Load(offsetof(seccomp_data, arch));
    // Another machine's numbers mean other calls; nobody makes any.
    IfNot(kMachine, SECCOMP_RET_ALLOW);
    Load(Low(5));
    Add(BPF_JMP | BPF_JEQ | BPF_K, Lower(kPass), 0, 3);
    Load(High(5));
    If(kPass >> 32, SECCOMP_RET_ALLOW);
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
        SYS_fcntl, SYS_shutdown}) {
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

// ---- what was trapped

const char* NameOf(int call) {
  switch (call) {
#define HOLDFAST_NAME(name) \
  case SYS_##name:          \
    return #name
    HOLDFAST_NAME(read);
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

struct Call {
  int number;
  uint64_t arguments[6];
  CallStack stack;
};
// One is told; then the process ends.
Call told;
std::atomic<bool> telling{false};
sem_t to_tell;

// Seconds for the names of the stack.
constexpr unsigned kNamesWithin = 3;

void Write(const std::string& line) {
  [[maybe_unused]] const ssize_t n =
      write(STDERR_FILENO, line.data(), line.size());
}

// Its own thread: it may read the program's symbols.
void TellAndEnd() {
  while (sem_wait(&to_tell) != 0) {
  }
  const char* const name = NameOf(told.number);
  std::string line = "holdfastd: the worker made a system call that may wait: ";
  absl::StrAppend(&line, name == nullptr ? "number" : name,
                  name == nullptr ? absl::StrCat(" ", told.number) : "", "(");
  for (int i = 0; i < 6; ++i) {
    absl::StrAppend(&line, i == 0 ? "0x" : ", 0x",
                    absl::Hex(told.arguments[i]));
  }
  absl::StrAppend(&line, ")\n");
  Write(line);
  // The trapped thread may have the dynamic linker's lock, which names want.
  std::thread([] {
    sleep(kNamesWithin);
    std::abort();
  }).detach();
  Write(absl::StrCat("holdfastd: its stack: ", StackText(told.stack.span()),
                     "\n"));
  std::abort();
}

int64_t MakeCall(const Call& call) {
  const uint64_t* const a = call.arguments;
  const int64_t result =
      syscall(call.number, a[0], a[1], a[2], a[3], a[4], kPass);
  return result < 0 ? -errno : result;
}

// The C library reads this once, when its heap first shrinks; no disk has it.
constexpr char kOvercommit[] = "/proc/sys/vm/overcommit_memory";

bool OpensOvercommit(const Call& call) {
  return strcmp(reinterpret_cast<const char*>(call.arguments[1]),
                kOvercommit) == 0;
}

bool IsOfProc(int fd) {
  struct statfs info = {};
  Call call = {};
  call.number = SYS_fstatfs;
  call.arguments[0] = static_cast<uint64_t>(fd);
  call.arguments[1] = reinterpret_cast<uint64_t>(&info);
  return MakeCall(call) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

// gRPC's locks are Abseil's, which sleep for some microseconds before they wait
// for their owners with a futex.
bool IsShort(const Call& call) {
  const auto* const time = reinterpret_cast<const timespec*>(call.arguments[2]);
  return call.arguments[1] == 0 && time->tv_sec == 0 &&
         time->tv_nsec <= 1000000;
}

// A write to a descriptor that refuses where it would wait.
bool WaitsForNothing(const Call& call) {
  switch (call.number) {
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_write:
    case SYS_writev: {
      const int flags = fcntl(static_cast<int>(call.arguments[0]), F_GETFL);
      return flags >= 0 && (flags & O_NONBLOCK) != 0;
    }
    case SYS_openat:
      return OpensOvercommit(call);
    case SYS_read:
    case SYS_close:
      return IsOfProc(static_cast<int>(call.arguments[0]));
    case SYS_clock_nanosleep:
      return IsShort(call);
    default:
      return false;
  }
}

void OnTrap(int, siginfo_t* info, void* context) {
  const int saved = errno;
  mcontext_t& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  Call call = {};
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
  if (WaitsForNothing(call)) {
    result =
        static_cast<std::remove_reference_t<decltype(result)>>(MakeCall(call));
    errno = saved;
    return;
  }
  if (!telling.exchange(true)) {
    call.stack = CallStack::Here(/*skip=*/1);
    told = call;
    sem_post(&to_tell);
  }
  while (true) sched_yield();  // the process ends
}

}  // namespace

void PrepareCallTrap() {
  static const bool once = [] {
    sem_init(&to_tell, 0, 0);
    CallStack::Here();  // loads what it needs
    struct sigaction action = {};
    action.sa_sigaction = &OnTrap;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSYS, &action, nullptr);
    std::thread(&TellAndEnd).detach();
    return true;
  }();
  static_cast<void>(once);
}

absl::Status TrapCalls() {
  if (InstallFilter()) return absl::OkStatus();
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
