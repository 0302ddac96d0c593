// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device: always there, and synchronous.
#ifndef HOLDFAST_SERVER_EXEC_CPU_DEVICE_H_
#define HOLDFAST_SERVER_EXEC_CPU_DEVICE_H_

#include <memory>

#include "kernels/device.h"

namespace holdfast {

// `threads` kernels may use, >= 1.
std::unique_ptr<Device> NewCpuDevice(int threads);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_CPU_DEVICE_H_
