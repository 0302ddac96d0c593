// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device: always there, and synchronous.
#ifndef HOLDFAST_SERVER_EXEC_CPU_DEVICE_H_
#define HOLDFAST_SERVER_EXEC_CPU_DEVICE_H_

#include <memory>

#include "kernels/device.h"
#include "server/exec/scratch_charge.h"

namespace holdfast {

// `threads` kernels may use, >= 1. `charge` is told of kernels' scratch memory;
// null: nobody counts it.
std::unique_ptr<Device> NewCpuDevice(
    int threads, std::unique_ptr<ScratchCharge> charge = nullptr);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_CPU_DEVICE_H_
