// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// CudaOnHost: runs the CUDA kernels' own sources, compiled for the host
// (kernels/cuda/launch.h), where a loop takes the place of a launch. What the
// GPU adds is not in it: threads that work together, and NVIDIA's libraries.
// Ops whose kernel is missing run on the CPU's. Thread-safety: as a CPU device.
#ifndef HOLDFAST_SERVER_FAKE_DEVICE_CUDA_ON_HOST_H_
#define HOLDFAST_SERVER_FAKE_DEVICE_CUDA_ON_HOST_H_

#include <memory>

#include "kernels/device.h"
#include "server/fake_device/fake_device.h"

namespace holdfast {

std::unique_ptr<Device> NewCudaOnHost();

// The CUDA kernels' chains (kernels/cuda/fused_chain.h).
extern const Fuser kFuserOnHost;

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_FAKE_DEVICE_CUDA_ON_HOST_H_
