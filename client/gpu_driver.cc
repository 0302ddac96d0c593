// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/gpu_driver.h"

#include <dlfcn.h>

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace holdfast::client {
namespace {

// The driver's types, as its ABI has them: CUresult and CUdevice are ints,
// contexts and streams pointers, CUdeviceptr is a 64-bit number.
using Context = void*;
using Stream = void*;
using Address = unsigned long long;  // NOLINT: CUdeviceptr

struct IpcHandle {  // passed by value
  char bytes[64];
};

constexpr int kSuccess = 0;
constexpr int kLazyEnablePeerAccess = 1;  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
constexpr int kAttributeDeviceOrdinal = 9;  // CU_POINTER_ATTRIBUTE_...
constexpr int kBusIdBytes = 32;

Address AsAddress(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

void* AsPointer(Address address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

}  // namespace

struct GpuDriver::Functions {
  int (*init)(unsigned);
  int (*error_name)(int, const char**);
  int (*device_count)(int*);
  int (*device_get)(int*, int);
  int (*bus_id)(char*, int, int);
  int (*retain_primary)(Context*, int);
  int (*push_context)(Context);
  int (*pop_context)(Context*);
  int (*open_handle)(Address*, IpcHandle, unsigned);
  int (*close_handle)(Address);
  int (*get_handle)(IpcHandle*, Address);
  int (*address_range)(Address*, size_t*, Address);
  int (*pointer_attribute)(void*, int, Address);
  int (*synchronize_stream)(Stream);
  int (*synchronize_context)();
  int (*copy_to_host)(void*, Address, size_t);
};

absl::StatusOr<const GpuDriver*> GpuDriver::Load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("[dlpack] memory of a GPU is shared through NVIDIA's "
                     "driver, which this "
                     "process cannot load: ",
                     dlerror(), ". Use .cpu() or .numpy()"));
  }
  static Functions functions;
  struct Wanted {
    const char* name;
    void* place;
  };
  const Wanted all[] = {
      {"cuInit", &functions.init},
      {"cuGetErrorName", &functions.error_name},
      {"cuDeviceGetCount", &functions.device_count},
      {"cuDeviceGet", &functions.device_get},
      {"cuDeviceGetPCIBusId", &functions.bus_id},
      {"cuDevicePrimaryCtxRetain", &functions.retain_primary},
      {"cuCtxPushCurrent_v2", &functions.push_context},
      {"cuCtxPopCurrent_v2", &functions.pop_context},
      {"cuIpcOpenMemHandle_v2", &functions.open_handle},
      {"cuIpcCloseMemHandle", &functions.close_handle},
      {"cuIpcGetMemHandle", &functions.get_handle},
      {"cuMemGetAddressRange_v2", &functions.address_range},
      {"cuPointerGetAttribute", &functions.pointer_attribute},
      {"cuStreamSynchronize", &functions.synchronize_stream},
      {"cuCtxSynchronize", &functions.synchronize_context},
      {"cuMemcpyDtoH_v2", &functions.copy_to_host},
  };
  for (const Wanted& one : all) {
    void* found = dlsym(library, one.name);
    if (found == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[dlpack] the driver of this machine (libcuda.so.1) lacks ", one.name,
          ": a newer one is needed"));
    }
    std::memcpy(one.place, &found, sizeof(found));
  }
  static const GpuDriver driver(&functions);
  if (absl::Status s = driver.StatusOf(functions.init(0), "cuInit"); !s.ok()) {
    return s;
  }
  return &driver;
}

absl::StatusOr<const GpuDriver*> GpuDriver::Get() {
  static const absl::StatusOr<const GpuDriver*> driver = Load();
  return driver;
}

absl::Status GpuDriver::StatusOf(int result, const char* what) const {
  if (result == kSuccess) return absl::OkStatus();
  const char* name = nullptr;
  call_.error_name(result, &name);
  return absl::InternalError(absl::StrCat(
      "[dlpack] ", what, ": ", name == nullptr ? "an unknown error" : name,
      " (", result, "). Use .cpu() or .numpy()"));
}

template <typename Body>
absl::Status GpuDriver::In(int ordinal, const char* what, Body body) const {
  int device = 0;
  Context context = nullptr;
  int result = call_.device_get(&device, ordinal);
  // Kept to the end of the process, as CUDA's runtime does.
  if (result == kSuccess) result = call_.retain_primary(&context, device);
  if (result == kSuccess) result = call_.push_context(context);
  if (result != kSuccess) return StatusOf(result, "the GPU's context");
  result = body();
  call_.pop_context(&context);
  return StatusOf(result, what);
}

absl::StatusOr<std::string> GpuDriver::BusIdOf(int ordinal) const {
  int device = 0;
  char text[kBusIdBytes] = {};
  int result = call_.device_get(&device, ordinal);
  if (result == kSuccess) result = call_.bus_id(text, kBusIdBytes, device);
  if (result != kSuccess) return StatusOf(result, "cuDeviceGetPCIBusId");
  return std::string(text);
}

absl::StatusOr<int> GpuDriver::OrdinalOf(const std::string& bus_id) const {
  int count = 0;
  const int result = call_.device_count(&count);
  if (result != kSuccess) return StatusOf(result, "cuDeviceGetCount");
  for (int i = 0; i < count; ++i) {
    const absl::StatusOr<std::string> found = BusIdOf(i);
    if (found.ok() && absl::EqualsIgnoreCase(*found, bus_id)) return i;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("[dlpack] this process must see the daemon's GPU at ",
                   bus_id, ", and sees ", count,
                   " others: look at CUDA_VISIBLE_DEVICES, or use "
                   ".cpu()"));
}

absl::StatusOr<int> GpuDriver::OrdinalOfMemory(const void* address) const {
  int ordinal = -1;
  const int result = call_.pointer_attribute(&ordinal, kAttributeDeviceOrdinal,
                                             AsAddress(address));
  if (result != kSuccess) return StatusOf(result, "cuPointerGetAttribute");
  return ordinal;
}

absl::StatusOr<void*> GpuDriver::Open(int ordinal,
                                      absl::string_view handle) const {
  IpcHandle wanted = {};
  if (handle.size() != sizeof(wanted.bytes)) {
    return absl::InternalError(absl::StrCat("[dlpack] a handle has ",
                                            sizeof(wanted.bytes),
                                            " bytes. Got ", handle.size()));
  }
  std::memcpy(wanted.bytes, handle.data(), handle.size());
  Address base = 0;
  absl::Status status = In(ordinal, "cuIpcOpenMemHandle", [&] {
    return call_.open_handle(&base, wanted, kLazyEnablePeerAccess);
  });
  if (!status.ok()) return status;
  return AsPointer(base);
}

void GpuDriver::Close(int ordinal, void* base) const {
  // Nobody could do anything about an error.
  In(ordinal, "cuIpcCloseMemHandle", [&] {
    return call_.close_handle(AsAddress(base));
  }).IgnoreError();
}

absl::StatusOr<GpuDriver::Allocation> GpuDriver::Share(
    int ordinal, const void* address) const {
  Allocation allocation;
  Address base = 0;
  IpcHandle handle = {};
  absl::Status status = In(ordinal, "cuIpcGetMemHandle", [&] {
    const int result =
        call_.address_range(&base, &allocation.bytes, AsAddress(address));
    return result == kSuccess ? call_.get_handle(&handle, base) : result;
  });
  if (!status.ok()) return status;
  allocation.base = AsPointer(base);
  allocation.handle.assign(handle.bytes, sizeof(handle.bytes));
  return allocation;
}

absl::Status GpuDriver::Synchronize(int ordinal, uintptr_t stream) const {
  return In(ordinal, "cuStreamSynchronize",
            [&] { return call_.synchronize_stream(AsPointer(stream)); });
}

absl::Status GpuDriver::SynchronizeAll(int ordinal) const {
  return In(ordinal, "cuCtxSynchronize",
            [&] { return call_.synchronize_context(); });
}

absl::Status GpuDriver::CopyToHost(int ordinal, void* host, const void* device,
                                   size_t bytes) const {
  return In(ordinal, "cuMemcpyDtoH",
            [&] { return call_.copy_to_host(host, AsAddress(device), bytes); });
}

}  // namespace holdfast::client
