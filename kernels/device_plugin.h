// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DevicePlugin: what a device's shared library shows the daemon. The library
// libholdfast_<name>.so exports one C function, holdfast_device_plugin, that
// returns a static DevicePlugin; the daemon opens it for --device=<name>
// (server/exec/device_library.h). What the two say to each other are C++ types,
// Abseil's among them: both must come from one build, and the fields before
// `open` say whether they do. Each side has its own copy of the functions;
// Abseil's are the daemon's.
// Thread-safety: the functions are called from the main thread, at start.
#ifndef HOLDFAST_KERNELS_DEVICE_PLUGIN_H_
#define HOLDFAST_KERNELS_DEVICE_PLUGIN_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device.h"

namespace holdfast {

class Recorder;  // kernels/recorder.h

// Raised with every change of this file, device.h, device_memory.h, kernel.h or
// recorder.h.
inline constexpr uint32_t kDevicePluginVersion = 8;
inline constexpr char kDevicePluginSymbol[] = "holdfast_device_plugin";

struct DeviceOptions {
  int index = 0;    // of --device=cuda:1: 1
  int threads = 1;  // host threads that it may use
  // Makes a CPU device of so many threads, for ops without a kernel. Not null.
  std::unique_ptr<Device> (*make_host)(int threads) = nullptr;
  // Told once, on any thread, when the device has failed for good, with all
  // that lies on it: whatever is asked of it fails (DataLoss) until the process
  // starts again. May be null.
  std::function<void(const absl::Status&)> on_lost;
};

struct OpenedDevice {
  std::unique_ptr<Device> device;
  Recorder* recorder = nullptr;  // the device's, if it has one
};

struct DevicePlugin {
  uint32_t version;         // kDevicePluginVersion
  const char* name;         // "cuda"
  uint64_t op_fingerprint;  // OpRowsFingerprint(): kernels go by op id
  // Devices of this machine that `open` takes an index of. The error is what
  // `open` would say of any.
  absl::StatusOr<int> (*count)();
  // Takes the device. The error says what is missing (a driver, a library, a
  // device of that index) and how to get it.
  absl::StatusOr<OpenedDevice> (*open)(const DeviceOptions& options);
};

using DevicePluginFn = const DevicePlugin* (*)();

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_DEVICE_PLUGIN_H_
