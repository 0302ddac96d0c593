// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// GPU memory that several processes have open (CUDA IPC). All act on the
// thread's current GPU. What fails leaves no error behind for the next launch.
// Thread-safety: pure functions over CUDA's own state.
#ifndef HOLDFAST_KERNELS_CUDA_SHARED_MEMORY_H_
#define HOLDFAST_KERNELS_CUDA_SHARED_MEMORY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"

namespace holdfast::cuda {

// CUDA hands out pieces of its own blocks of so many bytes, and shares blocks
// whole: only what fills its blocks is shared without its neighbours.
inline constexpr size_t kSharedGranularity = size_t{2} << 20;

// The bytes of a cudaIpcMemHandle_t. `segment` came from cudaMalloc.
absl::StatusOr<std::string> ExportHandle(const MemorySegment& segment);
// Opens another process's. `device`: the current one, whose memory it must be.
absl::StatusOr<Device::OpenedMemory> OpenHandle(absl::string_view handle,
                                                int device);
void CloseHandle(const Device::OpenedMemory& memory);

// "0000:3b:00.0"; "" if the driver does not tell.
std::string BusId(int device);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_SHARED_MEMORY_H_
