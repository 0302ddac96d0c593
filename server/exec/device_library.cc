// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/device_library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/device_plugin.h"
#include "ops/op_schema.h"
#include "ops/tensor_spec.h"
#include "server/exec/cpu_device.h"
#include "server/exec/metered_scratch.h"

namespace holdfast {
namespace {

// The folder of this program's file; empty where the system does not say.
std::string OwnFolder() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0 || length == sizeof(path)) return "";
  const std::string file(path, length);
  return file.substr(0, file.rfind('/'));
}

absl::Status BadName(absl::string_view device) {
  return absl::InvalidArgumentError(absl::StrCat(
      "[device] --device must be cpu, cuda, cuda:N, several as cuda:N,N, or "
      "cuda:all. Got '",
      device, "'."));
}

// "cuda:1,0" -> "cuda", {1, 0}; "cuda:all" -> "cuda", {}.
absl::Status ParseNames(absl::string_view device, std::string* name,
                        std::vector<int>* indices) {
  const size_t colon = device.find(':');
  *name = std::string(device.substr(0, colon));
  const bool known =
      !name->empty() && std::all_of(name->begin(), name->end(), [](char c) {
        return absl::ascii_isalnum(c) || c == '_';
      });
  if (!known) return BadName(device);
  *indices = {0};
  if (colon == device.npos) return absl::OkStatus();
  indices->clear();
  const absl::string_view list = device.substr(colon + 1);
  if (list == "all") return absl::OkStatus();
  for (absl::string_view one : absl::StrSplit(list, ',')) {
    int index = 0;
    if (!absl::SimpleAtoi(one, &index) || index < 0) return BadName(device);
    if (std::count(indices->begin(), indices->end(), index) != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[device] --device must name each device once. Got '", device, "'."));
    }
    indices->push_back(index);
  }
  return absl::OkStatus();
}

absl::Status NotThere(absl::string_view name,
                      const std::vector<std::string>& tried) {
  return absl::NotFoundError(absl::StrCat(
      "[device] --device=", name, " needs the library libholdfast_", name,
      ".so. Looked for ", absl::StrJoin(tried, ", "),
      ". A bundle or package made with --cuda has it (./dev bundle --cuda, "
      "./dev deb --cuda); wheels have the CPU alone. Name it with "
      "--device_library, or use --device=cpu."));
}

absl::StatusOr<const DevicePlugin*> Load(const std::string& path) {
  // Local: a device's libraries offer their names to nobody else.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[device] the device library cannot be loaded: ", dlerror(), "."));
  }
  const auto entry =
      reinterpret_cast<DevicePluginFn>(dlsym(handle, kDevicePluginSymbol));
  if (entry == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("[device] a device library exports ", kDevicePluginSymbol,
                     ". Got ", path, ", which does not."));
  }
  const DevicePlugin* plugin = entry();
  if (plugin->version != kDevicePluginVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[device] the device library must be of the daemon's own build. Got "
        "interface ",
        plugin->version, " in ", path, ", the daemon has ",
        kDevicePluginVersion, "."));
  }
  if (plugin->op_fingerprint != OpTableFingerprint()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[device] the device library must be of the daemon's own build. Got ",
        path, ", which was built from another op table."));
  }
  return plugin;
}

}  // namespace

std::vector<std::string> DeviceLibraryPaths(absl::string_view name) {
  const std::string file = absl::StrCat("libholdfast_", name, ".so");
  std::vector<std::string> paths;
  if (const char* folder = getenv("HOLDFAST_PLUGIN_PATH")) {
    if (*folder != '\0') paths.push_back(absl::StrCat(folder, "/", file));
  }
  if (const std::string own = OwnFolder(); !own.empty()) {
    paths.push_back(absl::StrCat(own, "/", file));
    paths.push_back(absl::StrCat(own, "/../lib/", file));
  }
  return paths;
}

absl::StatusOr<std::vector<OpenedDevice>> OpenDevices(
    absl::string_view devices, const std::string& library, int threads,
    std::function<void(const absl::Status&)> on_lost) {
  std::string name;
  std::vector<int> indices;
  absl::Status status = ParseNames(devices, &name, &indices);
  if (!status.ok()) return status;
  std::vector<OpenedDevice> opened;
  if (name == "cpu") {
    if (devices != "cpu") return BadName(devices);
    opened.push_back(
        {NewCpuDevice(threads, std::make_unique<MeteredScratch>()), nullptr});
    return opened;
  }
  std::vector<std::string> paths = {library};
  if (library.empty()) paths = DeviceLibraryPaths(name);
  const auto found = std::find_if(
      paths.begin(), paths.end(),
      [](const std::string& path) { return access(path.c_str(), R_OK) == 0; });
  if (found == paths.end()) return NotThere(name, paths);
  absl::StatusOr<const DevicePlugin*> plugin = Load(*found);
  if (!plugin.ok()) return plugin.status();
  if (name != (*plugin)->name) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[device] --device_library must be a library for ", name, ". Got ",
        *found, ", which is for ", (*plugin)->name, "."));
  }
  if (indices.empty()) {
    const absl::StatusOr<int> count = (*plugin)->count();
    if (!count.ok()) return count.status();
    for (int i = 0; i < std::min(*count, kMaxDevices); ++i) {
      indices.push_back(i);
    }
  }
  if (indices.size() > kMaxDevices) {
    return absl::InvalidArgumentError(
        absl::StrCat("[device] a daemon has at most ", kMaxDevices,
                     " devices. Got ", indices.size(), "."));
  }
  for (const int index : indices) {
    DeviceOptions options;
    options.index = index;
    options.threads = threads;
    options.make_host = [](int threads) {
      return NewCpuDevice(threads, std::make_unique<MeteredScratch>());
    };
    options.on_lost = on_lost;
    absl::StatusOr<OpenedDevice> one = (*plugin)->open(options);
    if (!one.ok()) return one.status();
    opened.push_back(*std::move(one));
  }
  return opened;
}

}  // namespace holdfast
