// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// libholdfast_fake.so: the fake device as the daemon opens any device, for
// tests: holdfastd --device=fake. $HOLDFAST_FAKE_LAG_US: microseconds that
// work waits before it begins. $HOLDFAST_FAKE_KERNELS: cpu, or cuda for the
// CUDA kernels' sources compiled for the host. $HOLDFAST_FAKE_BREAK_ON: the op
// that the device does not survive. $HOLDFAST_FAKE_NAME: cpu, or cuda for what
// programs take for GPUs. $HOLDFAST_FAKE_HANDLES: cuda for handles of memory
// that clients give to a CUDA driver, which must be one for tests.
// $HOLDFAST_FAKE_KERNEL_US: kernels take turns and so many microseconds more.
#include <dlfcn.h>
#include <stdlib.h>

#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cuda/copy.h"
#include "kernels/device_plugin.h"
#include "ops/op_fingerprint.h"
#include "server/exec/cpu_device.h"
#include "server/fake_device/cuda_on_host.h"
#include "server/fake_device/fake_device.h"

namespace holdfast {
namespace {

std::unique_ptr<Device> NewCpu() { return NewCpuDevice(1); }

// The file whose code is called for `function`, as kernels find it.
template <typename F>
std::string FileOf(F* function) {
  Dl_info found = {};
  dladdr(reinterpret_cast<void*>(function), &found);
  return found.dli_fname == nullptr ? "?" : found.dli_fname;
}

// Says whose functions the kernels call: those of this library, unless it was
// linked badly.
std::string Description() {
  return absl::StrCat("fake device, copies by ", FileOf(&cpu::MakeContiguous),
                      " (cpu) and ", FileOf(&cuda::MakeContiguous), " (cuda)");
}

constexpr int kDevices = 3;

absl::StatusOr<int> Count() { return kDevices; }

absl::StatusOr<OpenedDevice> Open(const DeviceOptions& options) {
  if (options.index >= kDevices) {
    return absl::NotFoundError(absl::StrCat(
        "[device] there are ", kDevices, " fake devices, counted from 0. Got ",
        options.index, "."));
  }
  int lag = 20;
  const char* wish = getenv("HOLDFAST_FAKE_LAG_US");
  if (wish != nullptr && (!absl::SimpleAtoi(wish, &lag) || lag < 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[device] HOLDFAST_FAKE_LAG_US must be a number >= 0. Got '", wish,
        "'."));
  }
  const char* kernels = getenv("HOLDFAST_FAKE_KERNELS");
  const absl::string_view chosen = kernels == nullptr ? "cpu" : kernels;
  if (chosen != "cpu" && chosen != "cuda") {
    return absl::InvalidArgumentError(absl::StrCat(
        "[device] HOLDFAST_FAKE_KERNELS must be cpu or cuda. Got '", chosen,
        "'."));
  }
  const bool cuda = chosen == "cuda";
  auto device = std::make_unique<FakeDevice>(
      absl::Microseconds(lag), cuda ? &NewCudaOnHost : &NewCpu,
      cuda ? &kFuserOnHost : nullptr, options.index);
  device->set_description(Description());
  if (const char* name = getenv("HOLDFAST_FAKE_NAME")) device->set_name(name);
  const char* handles = getenv("HOLDFAST_FAKE_HANDLES");
  if (handles != nullptr && absl::string_view(handles) == "cuda") {
    device->set_handle_kind(MemoryHandleKind::kCudaIpc);
  }
  if (const char* longer = getenv("HOLDFAST_FAKE_KERNEL_US")) {
    int us = 0;
    if (!absl::SimpleAtoi(longer, &us) || us < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[device] HOLDFAST_FAKE_KERNEL_US must be a number >= 0. Got '",
          longer, "'."));
    }
    device->WorkOneAtATime(absl::Microseconds(us));
  }
  const char* deadly = getenv("HOLDFAST_FAKE_BREAK_ON");
  if (deadly != nullptr) device->BreakOn(deadly, options.on_lost);
  Recorder* const recorder = device.get();
  return OpenedDevice{std::move(device), recorder};
}

}  // namespace
}  // namespace holdfast

extern "C" const holdfast::DevicePlugin* holdfast_device_plugin() {
  static const holdfast::DevicePlugin plugin = {
      holdfast::kDevicePluginVersion, "fake", holdfast::OpRowsFingerprint(),
      &holdfast::Count, &holdfast::Open};
  return &plugin;
}
