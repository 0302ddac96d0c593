// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Opens the device that --device names: the CPU, or one of a shared library
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

// `device` is "cpu", or "<name>" or "<name>:<index>" of a library. `library`:
// its path; empty: libholdfast_<name>.so in $HOLDFAST_PLUGIN_PATH, beside the
// daemon, or in ../lib from there. Libraries stay loaded. Errors say what is
// missing: the library, something that it needs, a driver, a device.
// `on_lost`: as in DeviceOptions.
absl::StatusOr<OpenedDevice> OpenDevice(
    absl::string_view device, const std::string& library, int threads,
    std::function<void(const absl::Status&)> on_lost = nullptr);

// Where OpenDevice looks for the library of `name`, in order.
std::vector<std::string> DeviceLibraryPaths(absl::string_view name);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_DEVICE_LIBRARY_H_
