// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <c10/core/StorageImpl.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace holdfast_torch {
namespace {

constexpr size_t kReserved = size_t{1} << 46;  // 64 TiB of addresses
constexpr int kLeastOrder = 9;                 // 512 bytes

// Ranges of addresses, in powers of two, of one mapping that nobody may touch,
// each with the memory that it is of: what died is used again as it is.
struct Owned {
  DeviceMemory memory;
  void* address = nullptr;
  int order = 0;
};

class AddressSpace {
 public:
  Owned* Take(size_t bytes) {
    const int order = bytes == 0 ? 0 : OrderOf(bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Owned*>& free = free_[static_cast<size_t>(order)];
    if (C10_LIKELY(!free.empty())) {
      Owned* owned = free.back();
      free.pop_back();
      return owned;
    }
    auto owned = std::make_unique<Owned>();
    owned->order = order;
    // PyTorch expects null for nothing.
    if (bytes != 0) owned->address = Reserve(order, bytes);
    return owned.release();
  }
  void GiveBack(Owned* owned) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_[static_cast<size_t>(owned->order)].push_back(owned);
  }

 private:
  static int OrderOf(size_t bytes) {
    int order = kLeastOrder;
    while (order < 47 && (size_t{1} << order) < bytes) ++order;
    return order;
  }

  void* Reserve(int order, size_t bytes) {
    if (base_ == nullptr) {
      void* base = mmap(nullptr, kReserved, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      TORCH_CHECK(base != MAP_FAILED, "holdfast: no address space of ",
                  kReserved, " bytes is free");
      base_ = static_cast<char*>(base);
    }
    const size_t size = size_t{1} << order;
    TORCH_CHECK_WITH(OutOfMemoryError, next_ + size <= kReserved,
                     "holdfast: a tensor of ", bytes, " bytes does not fit");
    void* address = base_ + next_;
    next_ += size;
    return address;
  }

  std::mutex mutex_;
  char* base_ = nullptr;
  size_t next_ = 0;
  std::array<std::vector<Owned*>, 48> free_;
};

AddressSpace& Addresses() {
  static auto* space = new AddressSpace;
  return *space;
}

void Delete(void* context) {
  auto* owned = static_cast<Owned*>(context);
  DeviceMemory& memory = owned->memory;
  memory.made.store(false, std::memory_order_relaxed);
  memory.whole.handle = Handle();
  for (ShownHandle& view : memory.views) view.handle = Handle();
  memory.fill.kind = HF_NONE;
  Addresses().GiveBack(owned);
}

class HoldfastAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    return NewDeviceMemory(bytes, ShownHandle());
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

bool Shows(const HfSpec& spec, const Shape& shape) {
  const auto rank = static_cast<size_t>(spec.rank);
  return spec.dtype == shape.dtype && spec.offset == shape.offset &&
         rank == shape.sizes.size() &&
         std::equal(spec.shape, spec.shape + rank, shape.sizes.data()) &&
         std::equal(spec.strides, spec.strides + rank, shape.strides.data());
}

c10::DataPtr NewDeviceMemory(size_t bytes, ShownHandle whole) {
  static std::atomic<uint64_t> next{1};
  Owned* owned = Addresses().Take(bytes);
  DeviceMemory& memory = owned->memory;
  memory.number = next.fetch_add(1, std::memory_order_relaxed);
  memory.bytes = bytes;
  if (whole.handle) {
    memory.whole = std::move(whole);
    memory.made.store(true, std::memory_order_release);
  }
  return {owned->address, owned, Delete,
          c10::Device(c10::DeviceType::PrivateUse1, 0)};
}

DeviceMemory* MemoryOf(const c10::StorageImpl& storage) {
  void* context = storage.data_ptr().get_context();
  return context == nullptr ? nullptr : &static_cast<Owned*>(context)->memory;
}

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, DeviceAllocator());

}  // namespace holdfast_torch
