// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// libholdfast_cuda.so, as the daemon opens it (kernels/device_plugin.h).
#include "kernels/cuda/cuda_device.h"
#include "kernels/device_plugin.h"
#include "ops/op_fingerprint.h"

extern "C" const holdfast::DevicePlugin* holdfast_device_plugin() {
  static const holdfast::DevicePlugin plugin = {
      holdfast::kDevicePluginVersion, "cuda", holdfast::OpRowsFingerprint(),
      &holdfast::cuda::CudaDevice::Count, &holdfast::cuda::CudaDevice::Open};
  return &plugin;
}
