// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <c10/core/StorageImpl.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <vector>

namespace holdfast_torch {
namespace {

constexpr size_t kReserved = size_t{1} << 46;  // 64 TiB of addresses
constexpr size_t kLeast = 512;

// Ranges of addresses, in powers of two, of one mapping that nobody may touch.
class AddressSpace {
 public:
  void* Take(size_t bytes) {
    const int order = OrderOf(bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (base_ == nullptr) {
      void* base = mmap(nullptr, kReserved, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      TORCH_CHECK(base != MAP_FAILED, "holdfast: no address space of ",
                  kReserved, " bytes is free");
      base_ = static_cast<char*>(base);
    }
    std::vector<void*>& free = free_[static_cast<size_t>(order)];
    if (!free.empty()) {
      void* address = free.back();
      free.pop_back();
      return address;
    }
    const size_t size = size_t{1} << order;
    TORCH_CHECK_WITH(OutOfMemoryError, next_ + size <= kReserved,
                     "holdfast: a tensor of ", bytes, " bytes does not fit");
    void* address = base_ + next_;
    next_ += size;
    return address;
  }
  void GiveBack(void* address, size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_[static_cast<size_t>(OrderOf(bytes))].push_back(address);
  }

 private:
  static int OrderOf(size_t bytes) {
    int order = 9;  // kLeast
    while (order < 47 && (size_t{1} << order) < bytes) ++order;
    return order;
  }

  std::mutex mutex_;
  char* base_ = nullptr;
  size_t next_ = 0;
  std::array<std::vector<void*>, 48> free_;
};

AddressSpace& Addresses() {
  static auto* space = new AddressSpace;
  return *space;
}

struct Owned {
  DeviceMemory memory;
  void* address = nullptr;
};

void Delete(void* context) {
  auto* owned = static_cast<Owned*>(context);
  if (owned->address != nullptr) {
    Addresses().GiveBack(owned->address, owned->memory.bytes);
  }
  delete owned;
}

class HoldfastAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    return NewDeviceMemory(bytes, Handle(), c10::ScalarType::Undefined);
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK(false, "holdfast: storages are copied as tensors");
  }
};

}  // namespace

c10::Allocator* DeviceAllocator() {
  static auto* allocator = new HoldfastAllocator;
  return allocator;
}

c10::DataPtr NewDeviceMemory(size_t bytes, Handle whole,
                             c10::ScalarType dtype) {
  static std::atomic<uint64_t> next{1};
  auto* owned = new Owned;
  owned->memory.number = next.fetch_add(1, std::memory_order_relaxed);
  owned->memory.bytes = bytes;
  owned->memory.whole = std::move(whole);
  owned->memory.dtype = dtype;
  // PyTorch expects null for nothing.
  if (bytes != 0) owned->address = Addresses().Take(bytes);
  return {owned->address, owned, Delete,
          c10::Device(c10::DeviceType::PrivateUse1, 0)};
}

DeviceMemory* MemoryOf(const c10::StorageImpl& storage) {
  void* context = storage.data_ptr().get_context();
  return context == nullptr ? nullptr : &static_cast<Owned*>(context)->memory;
}

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, DeviceAllocator());

}  // namespace holdfast_torch
