// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Opens the devices that --device names: the CPU, or one of a shared library
// (kernels/device_plugin.h) that is loaded for it.
#ifndef HOLDFAST_SERVER_EXEC_DEVICE_LIBRARY_H_
#define HOLDFAST_SERVER_EXEC_DEVICE_LIBRARY_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device_plugin.h"

namespace holdfast {

// `devices` is "cpu", or "<name>" of a library, which is its first one,
// "<name>:<index>,<index>..." or "<name>:all". `library`: its path; empty:
// libholdfast_<name>.so in $HOLDFAST_PLUGIN_PATH, beside the daemon, or in
// ../lib from there. Libraries stay loaded. Errors say what is missing: the
// library, something that it needs, a driver, a device. `on_lost`: as in
// DeviceOptions. At least one, in the order of their names.
absl::StatusOr<std::vector<OpenedDevice>> OpenDevices(
    absl::string_view devices, const std::string& library, int threads,
    std::function<void(const absl::Status&)> on_lost = nullptr);

// Where OpenDevices looks for the library of `name`, in order.
std::vector<std::string> DeviceLibraryPaths(absl::string_view name);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_DEVICE_LIBRARY_H_
