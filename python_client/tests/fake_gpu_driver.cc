// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// libcuda.so.1 for a machine without a GPU: what client/gpu_driver.cc calls,
// over files of memory. It stands in for the driver of the fake device that
// goes by HOLDFAST_FAKE_HANDLES=cuda, whose handles are 64 bytes with a path in
// them. It demands what the driver does: a context on the thread, allocations'
// bases, another process's handles.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>

namespace {

constexpr int kInvalidValue = 1, kNotInitialized = 3, kInvalidContext = 201;
constexpr int kDevices = 2;

struct Allocation {
  size_t bytes;
  int fd;  // -1: another process's
  int device;
};
std::map<unsigned long long, Allocation>& Allocations() {
  static std::map<unsigned long long, Allocation> all;
  return all;
}

bool g_initialized = false;
thread_local int g_current = -1;
char g_contexts[kDevices];
unsigned long long g_synchronized = 0;  // streams waited for

const std::pair<const unsigned long long, Allocation>* Find(
    unsigned long long address) {
  auto it = Allocations().upper_bound(address);
  if (it == Allocations().begin()) return nullptr;
  --it;
  return address < it->first + it->second.bytes ? &*it : nullptr;
}

struct Handle {
  char bytes[64];
};

}  // namespace

extern "C" {

int cuInit(unsigned) {
  g_initialized = true;
  return 0;
}
int cuGetErrorName(int, const char** name) {
  *name = "CUDA_ERROR_FAKE";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = kDevices;
  return g_initialized ? 0 : kNotInitialized;
}
int cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= kDevices) return kInvalidValue;
  *device = ordinal;
  return g_initialized ? 0 : kNotInitialized;
}
// The other way round than the daemon's, as CUDA_VISIBLE_DEVICES may have it.
int cuDeviceGetPCIBusId(char* text, int size, int device) {
  snprintf(text, size, "FAKE:%d", kDevices - 1 - device);
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &g_contexts[device];
  return 0;
}
int cuCtxPushCurrent_v2(void* context) {
  g_current = static_cast<int>(static_cast<char*>(context) - g_contexts);
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  *context = g_current < 0 ? nullptr : &g_contexts[g_current];
  g_current = -1;
  return 0;
}
int cuIpcOpenMemHandle_v2(unsigned long long* address, Handle handle,
                          unsigned flags) {
  if (g_current < 0) return kInvalidContext;
  if (flags != 1 || handle.bytes[63] != 0) return kInvalidValue;
  const int fd = open(handle.bytes, O_RDWR | O_CLOEXEC);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) return kInvalidValue;
  void* base =
      mmap(nullptr, info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (base == MAP_FAILED) return kInvalidValue;
  *address = reinterpret_cast<unsigned long long>(base);
  Allocations()[*address] = {static_cast<size_t>(info.st_size), -1, g_current};
  return 0;
}
int cuIpcCloseMemHandle(unsigned long long address) {
  if (g_current < 0) return kInvalidContext;
  const auto it = Allocations().find(address);
  if (it == Allocations().end() || it->second.fd >= 0) return kInvalidValue;
  munmap(reinterpret_cast<void*>(address), it->second.bytes);
  Allocations().erase(it);
  return 0;
}
int cuIpcGetMemHandle(Handle* handle, unsigned long long address) {
  if (g_current < 0) return kInvalidContext;
  const auto it = Allocations().find(address);  // its base
  if (it == Allocations().end() || it->second.fd < 0) return kInvalidValue;
  memset(handle, 0, sizeof(*handle));
  snprintf(handle->bytes, sizeof(handle->bytes), "/proc/%d/fd/%d", getpid(),
           it->second.fd);
  return 0;
}
int cuMemGetAddressRange_v2(unsigned long long* base, size_t* bytes,
                            unsigned long long address) {
  if (g_current < 0) return kInvalidContext;
  const auto* found = Find(address);
  if (found == nullptr) return kInvalidValue;
  *base = found->first;
  *bytes = found->second.bytes;
  return 0;
}
int cuPointerGetAttribute(void* value, int attribute,
                          unsigned long long address) {
  const auto* found = Find(address);
  if (found == nullptr || attribute != 9) return kInvalidValue;
  *static_cast<int*>(value) = found->second.device;
  return 0;
}
int cuStreamSynchronize(void* stream) {
  if (g_current < 0) return kInvalidContext;
  g_synchronized = reinterpret_cast<unsigned long long>(stream);
  return 0;
}
int cuCtxSynchronize() {
  if (g_current < 0) return kInvalidContext;
  g_synchronized = ~0ull;
  return 0;
}
int cuMemcpyDtoH_v2(void* host, unsigned long long address, size_t bytes) {
  if (g_current < 0) return kInvalidContext;
  const auto* found = Find(address);
  if (found == nullptr ||
      address + bytes > found->first + found->second.bytes) {
    return kInvalidValue;
  }
  memcpy(host, reinterpret_cast<void*>(address), bytes);
  return 0;
}

// ---- for the test: memory of this process on a GPU; `shared` 0: such as no
// other process can open; what was waited for last, ~0: everything; how many
// handles of other processes are open.
void* fake_allocate(size_t bytes, int device, int shared) {
  const int fd = memfd_create("fake_gpu", MFD_ALLOW_SEALING);
  if (ftruncate(fd, bytes) != 0) return nullptr;
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  Allocations()[reinterpret_cast<unsigned long long>(base)] = {
      bytes, shared != 0 ? fd : -1, device};
  return base;
}
unsigned long long fake_synchronized() { return g_synchronized; }
int fake_opened() {
  int count = 0;
  for (const auto& [address, one] : Allocations()) count += one.fd < 0;
  return count;
}

}  // extern "C"
