// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/shared_memory.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_error.h"

namespace holdfast::cuda {
namespace {

absl::Status Refused(cudaError_t error, const char* what) {
  cudaGetLastError();
  return CudaStatus(error, what);
}

// CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* size, CUdeviceptr
// address): the runtime has nothing like it, and the driver is loaded already.
using AddressRangeFn = int (*)(unsigned long long*, size_t*,  // NOLINT: CUDA's
                               unsigned long long);

AddressRangeFn FindAddressRange() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return nullptr;
  return reinterpret_cast<AddressRangeFn>(
      dlsym(driver, "cuMemGetAddressRange_v2"));
}

// Bytes of the allocation from `address` on; 0 if it is in none.
size_t BytesFrom(const void* address) {
  static const AddressRangeFn range = FindAddressRange();
  unsigned long long base = 0;  // NOLINT: CUDA's
  size_t size = 0;
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (range == nullptr || range(&base, &size, at) != 0) return 0;
  return base + size > at ? base + size - at : 0;
}

}  // namespace

absl::StatusOr<std::string> ExportHandle(const MemorySegment& segment) {
  if (segment.bytes % kSharedGranularity != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[dlpack] the tensor lies in a piece of memory of ", segment.bytes,
        " bytes that was taken when memory was short, and only whole blocks of "
        "2 MiB can be shared. Free tensors, then share a clone()"));
  }
  cudaIpcMemHandle_t handle;
  const cudaError_t error = cudaIpcGetMemHandle(&handle, segment.base);
  if (error != cudaSuccess) return Refused(error, "cudaIpcGetMemHandle");
  return std::string(reinterpret_cast<const char*>(&handle), sizeof(handle));
}

absl::StatusOr<Device::OpenedMemory> OpenHandle(absl::string_view handle,
                                                int device) {
  cudaIpcMemHandle_t wanted;
  if (handle.size() != sizeof(wanted)) {
    return absl::InvalidArgumentError(
        absl::StrCat("[cuda] a handle of memory has ", sizeof(wanted),
                     " bytes. Got ", handle.size()));
  }
  std::memcpy(&wanted, handle.data(), sizeof(wanted));
  Device::OpenedMemory memory;
  cudaError_t error = cudaIpcOpenMemHandle(&memory.base, wanted,
                                           cudaIpcMemLazyEnablePeerAccess);
  if (error != cudaSuccess) return Refused(error, "cudaIpcOpenMemHandle");
  // What the other process says of its memory is not believed.
  memory.bytes = BytesFrom(memory.base);
  cudaPointerAttributes attributes = {};
  error = cudaPointerGetAttributes(&attributes, memory.base);
  if (error == cudaSuccess && memory.bytes > 0 && attributes.device == device) {
    return memory;
  }
  CloseHandle(memory);
  if (error != cudaSuccess) return Refused(error, "cudaPointerGetAttributes");
  return absl::InvalidArgumentError(
      absl::StrCat("[cuda] the memory must be of cuda:", device,
                   ", with a size that the "
                   "driver knows. Got cuda:",
                   attributes.device, ", ", memory.bytes, " bytes"));
}

void CloseHandle(const Device::OpenedMemory& memory) {
  if (cudaIpcCloseMemHandle(memory.base) != cudaSuccess) cudaGetLastError();
}

std::string BusId(int device) {
  char text[32] = {};
  if (cudaDeviceGetPCIBusId(text, sizeof(text), device) != cudaSuccess) {
    cudaGetLastError();
    return "";
  }
  return text;
}

}  // namespace holdfast::cuda
