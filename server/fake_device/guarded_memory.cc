// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/fake_device/guarded_memory.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "ops/tensor_spec.h"

namespace holdfast {
namespace {

struct Code {
  uintptr_t begin = 0, end = 0;
  bool Has(uintptr_t at) const { return begin <= at && at < end; }
};

struct Region {
  char* base;
  size_t bytes;
  int prot;
  bool open;
};

thread_local int scopes = 0;  // KernelScopes of this thread

// A stack for the handler: code that a library wrote while it ran (oneDNN's
// products) may have its stack pointer in memory of its own.
class HandlerStack {
 public:
  HandlerStack() : memory_(kBytes) {
    stack_t before = {};
    sigaltstack(nullptr, &before);
    if ((before.ss_flags & SS_DISABLE) == 0) return;  // a sanitizer's
    stack_t own = {};
    own.ss_sp = memory_.data();
    own.ss_size = kBytes;
    ours_ = sigaltstack(&own, nullptr) == 0;
  }
  ~HandlerStack() {
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    if (ours_) sigaltstack(&none, nullptr);
  }
  HandlerStack(const HandlerStack&) = delete;
  HandlerStack& operator=(const HandlerStack&) = delete;

 private:
  static constexpr size_t kBytes = 256 << 10;
  std::vector<char> memory_;
  bool ours_ = false;
};

class Guards {
 public:
  // Never destroyed: streams may outlive static objects.
  static Guards& Get() {
    static auto* const guards = new Guards;
    return *guards;
  }

  void Add(void* base, size_t bytes, int prot) {
    std::lock_guard<std::mutex> lock(mutex_);
    mprotect(base, bytes, PROT_NONE);
    regions_.push_back({static_cast<char*>(base), bytes, prot, false});
  }
  void Remove(void* base) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it =
        std::find_if(regions_.begin(), regions_.end(),
                     [&](const Region& region) { return region.base == base; });
    if (it == regions_.end()) return;
    mprotect(it->base, it->bytes, PROT_READ | PROT_WRITE);
    regions_.erase(it);
  }
  // Another stream's kernel may be in the middle of one: it opens it again.
  void CloseAll() {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Region& region : regions_) {
      if (!region.open) continue;
      mprotect(region.base, region.bytes, PROT_NONE);
      region.open = false;
    }
  }

 private:
  Guards() {
    FindCode();
    // What the unwinder does the first time may not be done in a handler.
    void* frames[1];
    backtrace(frames, 1);
    struct sigaction action = {};
    action.sa_sigaction = &OnFault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before_);
  }

  // Where the code of this file's library lies, and that of the program.
  void FindCode() {
    const auto visit = [](dl_phdr_info* info, size_t, void* data) {
      auto* const self = static_cast<Guards*>(data);
      Code code;
      for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = info->dlpi_phdr[i];
        if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
        code.begin = info->dlpi_addr + part.p_vaddr;
        code.end = code.begin + part.p_memsz;
      }
      // The program is the first.
      if (self->program_.end == 0) self->program_ = code;
      if (code.Has(reinterpret_cast<uintptr_t>(&OnFault))) self->own_ = code;
      return 0;
    };
    dl_iterate_phdr(visit, this);
  }

  // Whether the device's kernels have come to `at`: functions of the system's
  // libraries (memcpy, BLAS) belong to who called them.
  bool IsOwn(uintptr_t at) const {
    if (own_.begin == program_.begin) return true;  // there is no telling
    if (own_.Has(at)) return true;
    if (program_.Has(at)) return false;
    struct Search {
      const Guards* guards;
      uintptr_t at;
      bool begun = false, own = true;
    } search = {this, at};
    const auto visit = [](_Unwind_Context* context, void* data) {
      auto* const search = static_cast<Search*>(data);
      const uintptr_t frame = _Unwind_GetIP(context);
      // First come this handler's own frames.
      if (!search->begun) {
        search->begun = frame == search->at;
        return _URC_NO_REASON;
      }
      if (search->guards->own_.Has(frame)) return _URC_END_OF_STACK;
      if (!search->guards->program_.Has(frame)) return _URC_NO_REASON;
      search->own = false;
      return _URC_END_OF_STACK;
    };
    _Unwind_Backtrace(visit, &search);
    return search.own;
  }

  // No code that faults here holds the lock.
  bool Open(const void* address, uintptr_t at, bool* guarded) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Region& region : regions_) {
      if (address < region.base || address >= region.base + region.bytes) {
        continue;
      }
      *guarded = true;
      if (scopes == 0 || !IsOwn(at)) return false;
      region.open = true;
      return mprotect(region.base, region.bytes, region.prot) == 0;
    }
    return false;
  }

  // `device`: which one, if that is known.
  [[noreturn]] static void Die(uintptr_t at, int device) {
    Dl_info code = {};
    dladdr(reinterpret_cast<void*>(at), &code);
    char where[40] = "by its place in this process";
    if (device >= 0) {
      std::snprintf(where, sizeof(where), "by its address on device %d",
                    device);
    }
    char text[1024];
    const int length = std::snprintf(
        text, sizeof(text),
        "[fake] memory of a device must be used by its kernels alone. Got %s "
        "at %#zx in %s (%s).\n",
        code.dli_sname == nullptr ? "code" : code.dli_sname,
        at - reinterpret_cast<uintptr_t>(code.dli_fbase),
        code.dli_fname == nullptr ? "?" : code.dli_fname, where);
    if (write(STDERR_FILENO, text, std::min<size_t>(length, sizeof(text) - 1)) <
        0) {
      std::abort();
    }
    std::abort();
  }

  // A fault without an address: a register has one that no processor reaches.
  static int DeviceInRegisters(const ucontext_t& context) {
    for (const greg_t value : context.uc_mcontext.gregs) {
      const uintptr_t high = static_cast<uintptr_t>(value) >> kDeviceIndexBit;
      const uintptr_t index = high - (kDeviceOffset >> kDeviceIndexBit);
      if (index < kMaxDevices) return static_cast<int>(index);
    }
    return -1;
  }

  static void OnFault(int signal, siginfo_t* info, void* opaque) {
    Guards& self = Get();
    const auto& context = *static_cast<ucontext_t*>(opaque);
    const uintptr_t at = context.uc_mcontext.gregs[REG_RIP];
    if (info->si_code == SI_KERNEL) {
      const int device = DeviceInRegisters(context);
      if (device >= 0) Die(at, device);
    } else {
      bool guarded = false;
      if (self.Open(info->si_addr, at, &guarded)) return;
      if (guarded) Die(at, -1);
    }
    // Not ours: it comes again, to who was here before.
    sigaction(signal, &self.before_, nullptr);
  }

  Code own_, program_;
  struct sigaction before_ = {};
  std::mutex mutex_;  // guards what follows
  std::vector<Region> regions_;
};

}  // namespace

void Guard(void* base, size_t bytes, int prot) {
  Guards::Get().Add(base, bytes, prot);
}

void Unguard(void* base) { Guards::Get().Remove(base); }

KernelScope::KernelScope() {
  thread_local const HandlerStack stack;
  (void)stack;
  ++scopes;
}

KernelScope::~KernelScope() {
  if (--scopes == 0) Guards::Get().CloseAll();
}

}  // namespace holdfast
