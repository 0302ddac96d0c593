// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "pinned.h"

#include <c10/util/Exception.h>
#include <stdlib.h>

#include <cstring>
#include <map>
#include <mutex>

namespace holdfast_torch {
namespace {

constexpr size_t kPage = 4096;

// Addresses that are given out, with the end of each.
class Ranges {
 public:
  void Add(const void* address, size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const char* first = static_cast<const char*>(address);
    ends_[first] = first + bytes;
  }
  void Remove(const void* address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_.erase(static_cast<const char*>(address));
  }
  bool Has(const void* address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const char* wanted = static_cast<const char*>(address);
    auto after = ends_.upper_bound(wanted);
    return after != ends_.begin() && wanted < (--after)->second;
  }

 private:
  std::mutex mutex_;
  std::map<const char*, const char*> ends_;
};

Ranges& Given() {
  static auto* ranges = new Ranges;
  return *ranges;
}

void Free(void* address) {
  Given().Remove(address);
  free(address);
}

class HostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, cpu};
    void* address = nullptr;
    TORCH_CHECK_WITH(OutOfMemoryError,
                     posix_memalign(&address, kPage, bytes) == 0,
                     "holdfast: no ", bytes, " bytes of pinned host memory");
    Given().Add(address, bytes);
    return {address, address, Free, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return Free; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

}  // namespace

c10::Allocator* PinnedAllocator() {
  static auto* allocator = new HostAllocator;
  return allocator;
}

bool IsPinned(const void* address) { return Given().Has(address); }

}  // namespace holdfast_torch
