// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/device_mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "client/gpu_driver.h"
#include "client/local_socket.h"

namespace holdfast::client {
namespace {

// All mappings of this process by their first byte. Mappings may go after main
// has returned.
struct Registry {
  std::mutex mutex;
  std::map<const char*, std::weak_ptr<DeviceMapping>> mappings
      ABSL_GUARDED_BY(mutex);
};

Registry& AllMappings() {
  static auto* registry = new Registry;
  return *registry;
}

// Memory of a device that is plain memory.
absl::StatusOr<char*> MapFile(const std::string& path, uint64_t bytes) {
  const Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat info = {};
  void* data = MAP_FAILED;
  // A mapping that reaches past the file's end would fault when touched.
  if (fd.get() >= 0 && fstat(fd.get(), &info) == 0) {
    if (static_cast<uint64_t>(info.st_size) >= bytes) {
      data =
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    } else {
      errno = EINVAL;
    }
  }
  if (data == MAP_FAILED) {
    return absl::InternalError(absl::StrCat(
        "[dlpack] the daemon's memory ", path, " cannot be opened here: ",
        strerror(errno), ". Use .cpu() or .numpy()"));
  }
  return static_cast<char*>(data);
}

}  // namespace

DeviceMapping::~DeviceMapping() {
  if (base == nullptr) return;
  {
    Registry& all = AllMappings();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.mappings.erase(base);
  }
  if (gpu.handles() == wire::Gpu::FILE) {
    munmap(base, bytes);
  } else if (const absl::StatusOr<const GpuDriver*> driver = GpuDriver::Get();
             driver.ok()) {
    (*driver)->Close(ordinal, base);
  }
}

absl::StatusOr<int> OrdinalOf(const wire::Gpu& gpu, uint32_t place) {
  if (gpu.handles() == wire::Gpu::FILE) return static_cast<int>(place);
  const absl::StatusOr<const GpuDriver*> driver = GpuDriver::Get();
  if (!driver.ok()) return driver.status();
  return (*driver)->OrdinalOf(gpu.bus_id());
}

std::shared_ptr<DeviceMapping> FindMapping(const void* address) {
  const char* const at = static_cast<const char*>(address);
  Registry& all = AllMappings();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto it = all.mappings.upper_bound(at);
  if (it == all.mappings.begin()) return nullptr;
  std::shared_ptr<DeviceMapping> found = (--it)->second.lock();
  if (found == nullptr || at >= found->base + found->bytes) return nullptr;
  return found;
}

absl::StatusOr<std::shared_ptr<DeviceMapping>> DeviceMappings::Open(
    const wire::Gpu& gpu, const wire::ExportedMemory& memory,
    const std::string& session) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<DeviceMapping>& known =
      segments_[{memory.gpu(), memory.segment()}];
  if (known != nullptr) return known;
  const absl::StatusOr<int> ordinal = OrdinalOf(gpu, memory.gpu());
  if (!ordinal.ok()) return ordinal.status();
  absl::StatusOr<char*> base = nullptr;
  if (gpu.handles() == wire::Gpu::FILE) {
    base = MapFile(memory.handle(), memory.segment_bytes());
  } else {
    const absl::StatusOr<const GpuDriver*> driver = GpuDriver::Get();
    if (!driver.ok()) return driver.status();
    absl::StatusOr<void*> opened = (*driver)->Open(*ordinal, memory.handle());
    if (!opened.ok()) return opened.status();
    base = static_cast<char*>(*opened);
  }
  if (!base.ok()) return base.status();
  auto mapping = std::make_shared<DeviceMapping>();
  mapping->base = *base;
  mapping->bytes = memory.segment_bytes();
  mapping->ordinal = *ordinal;
  mapping->gpu = gpu;
  mapping->session = session;
  mapping->segment = memory.segment();
  mapping->place = memory.gpu();
  mapping->handle = memory.handle();
  known = mapping;
  Registry& all = AllMappings();
  std::lock_guard<std::mutex> registry_lock(all.mutex);
  all.mappings[mapping->base] = mapping;
  return mapping;
}

void DeviceMappings::Clear() {
  std::map<std::pair<uint32_t, uint64_t>, std::shared_ptr<DeviceMapping>> all;
  std::lock_guard<std::mutex> lock(mutex_);
  all.swap(segments_);
}

}  // namespace holdfast::client
