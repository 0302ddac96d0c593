// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// GuardedMemory: memory that nobody but the fake device's own kernels and
// copies can use. It is closed (PROT_NONE) unless a kernel's own code has
// touched it: the fault of the first touch looks at whose code that was, and
// opens the memory until that kernel is done, or ends the process with a
// message. The device's code is that of its library; where it is part of the
// program, as in tests, it is what runs inside of a KernelScope.
//
// Also the addresses by which others know such memory: no processor reaches
// them, so that any use faults at any time.
// Thread-safety: all functions from any thread.
#ifndef HOLDFAST_SERVER_FAKE_DEVICE_GUARDED_MEMORY_H_
#define HOLDFAST_SERVER_FAKE_DEVICE_GUARDED_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace holdfast {

// Neither address space of the processor reaches so far.
inline constexpr uintptr_t kDeviceOffset = uintptr_t{1} << 62;
inline constexpr int kDeviceIndexBit = 48;  // above it, the device's number
inline constexpr uintptr_t kGuardedBits = (uintptr_t{1} << kDeviceIndexBit) - 1;

inline void* ToDevice(void* guarded, int index) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(guarded) |
                                 kDeviceOffset |
                                 uintptr_t(index) << kDeviceIndexBit);
}
// Where the device's own code finds it.
inline void* ToGuarded(const void* device) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(device);
  // Not a device's address: what comes of it is to fault as well.
  if ((address & kDeviceOffset) == 0) {
    return reinterpret_cast<void*>(kDeviceOffset);
  }
  return reinterpret_cast<void*>(address & kGuardedBits);
}

// Closes whole pages, which stay mapped by their owner; `prot` is what kernels
// may do (PROT_READ and the like). Unguard opens them again.
void Guard(void* base, size_t bytes, int prot);
void Unguard(void* base);

// A kernel or copy of the device runs on this thread. What it has opened is
// closed when it ends; who still uses it opens it again.
class KernelScope {
 public:
  KernelScope();
  ~KernelScope();
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_FAKE_DEVICE_GUARDED_MEMORY_H_
