// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// HostContext: what the kernels' sources run in where they are compiled for the
// host. Device memory is host memory.
// Thread-safety: as CudaContext's.
#ifndef HOLDFAST_KERNELS_CUDA_HOST_CONTEXT_H_
#define HOLDFAST_KERNELS_CUDA_HOST_CONTEXT_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/cuda/cuda_context.h"

namespace holdfast::cuda {

class HostContext : public CudaContext {
 public:
  explicit HostContext(Device* host = nullptr) : host_(host) {}
  ~HostContext() override { FreeScratch(); }
  HostContext(const HostContext&) = delete;
  HostContext& operator=(const HostContext&) = delete;

  // Filled with what is no number, so that nobody relies on zeros.
  void* Scratch(size_t bytes) override {
    constexpr size_t kAlignment = 256;
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* data = std::aligned_alloc(kAlignment, rounded);
    if (data == nullptr) return nullptr;
    std::memset(data, 0xfe, rounded);
    scratch_.push_back(data);
    return data;
  }
  void FreeScratch() {
    for (void* data : scratch_) std::free(data);
    scratch_.clear();
  }

  void* stream() const override { return nullptr; }
  CudaLibraries& libraries() override { std::abort(); }
  Device* host() override { return host_; }
  absl::Status CopyToHost(void* host, const void* device,
                          size_t bytes) override {
    return Copy(host, device, bytes);
  }
  absl::Status CopyToDevice(void* device, const void* host,
                            size_t bytes) override {
    return Copy(device, host, bytes);
  }
  absl::Status CopyOnDevice(void* to, const void* from, size_t bytes) override {
    return Copy(to, from, bytes);
  }
  absl::Status FillBytes(void* device, uint8_t value, size_t bytes) override {
    std::memset(device, value, bytes);
    return absl::OkStatus();
  }
  absl::Status LaunchStatus() override { return absl::OkStatus(); }

 private:
  static absl::Status Copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }

  Device* const host_;
  std::vector<void*> scratch_;
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_HOST_CONTEXT_H_
