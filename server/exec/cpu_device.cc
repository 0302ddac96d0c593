// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device: kernels run inside Launch, on the worker thread and the
// threads it forks.
#include "server/exec/cpu_device.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/kernel_table.h"
#include "kernels/widened.h"
#include "ops/op_schema.h"
#include "server/memory/host_memory.h"

namespace holdfast {
namespace {

absl::Status CopyAll(KernelContext& context, const TensorView& from,
                     const TensorView& to) {
  CopyStrided(context, from, to);
  return absl::OkStatus();
}

// Scratch memory grows to the largest kernel's need and is reused.
class CpuKernelContext final : public KernelContext {
 public:
  void* Scratch(size_t bytes) override {
    constexpr size_t kAlignment = 64;
    for (Chunk& chunk : chunks_) {
      if (!chunk.used && chunk.bytes >= bytes) {
        chunk.used = true;
        return chunk.data.get();
      }
    }
    const size_t rounded = (bytes + kAlignment) / kAlignment * kAlignment;
    void* data = std::aligned_alloc(kAlignment, rounded);
    if (data == nullptr) return nullptr;
    chunks_.push_back({std::unique_ptr<void, Deleter>(data), rounded, true});
    return data;
  }

  // Ends a kernel. Large scratch is not hoarded for ever.
  void Reset() {
    constexpr size_t kKeepBytes = size_t{256} << 20;
    size_t kept = 0;
    for (auto it = chunks_.begin(); it != chunks_.end();) {
      it->used = false;
      kept += it->bytes;
      it = kept > kKeepBytes ? chunks_.erase(it) : it + 1;
    }
  }
  bool used() const { return !chunks_.empty(); }

 private:
  struct Deleter {
    void operator()(void* data) const { std::free(data); }
  };
  struct Chunk {
    std::unique_ptr<void, Deleter> data;
    size_t bytes;
    bool used;
  };
  std::vector<Chunk> chunks_;
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int threads) { context_.num_threads = threads; }

  absl::string_view name() const override { return "cpu"; }
  std::string description() const override {
    return absl::StrCat("cpu, ", context_.num_threads, " threads");
  }
  bool host_memory() const override { return true; }

  std::unique_ptr<DeviceMemory> CreateMemory(bool shared) override {
    return std::make_unique<HostMemory>(shared);
  }
  absl::Status PinHost(void*, size_t) override { return absl::OkStatus(); }
  void UnpinHost(void*) override {}

  // It has one, which is done with everything.
  absl::StatusOr<StreamId> CreateStream(int) override { return 0; }
  void DestroyStream(StreamId) override {}

  absl::Status Launch(StreamId, PhiloxState philox, const Attrs& attrs,
                      absl::Span<const TensorView> inputs,
                      absl::Span<const TensorView> outputs) override {
    context_.philox = philox;
    const KernelFn kernel =
        kernels_.kernels[static_cast<int>(attrs.schema().id)];
    absl::Status status =
        !attrs.schema().has(kAnyDType) && NeedsWidening(inputs, outputs)
            ? RunWidened(kernel, &CopyAll, context_, attrs, inputs, outputs)
            : kernel(context_, attrs, inputs, outputs);
    if (context_.used()) context_.Reset();
    return status;
  }

  absl::Status ComputeSizes(StreamId, const Attrs& attrs,
                            absl::Span<const TensorView> inputs,
                            absl::Span<int64_t> sizes) override {
    if (context_.used()) context_.Reset();  // the kernel may not have followed
    context_.carried = nullptr;
    return kernels_.sizes[static_cast<int>(attrs.schema().id)](context_, attrs,
                                                               inputs, sizes);
  }

  absl::Status Copy(StreamId, CopyKind, void* to, const void* from,
                    size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  absl::Status CopyFrom(StreamId, void* to, Device*, StreamId, const void* from,
                        size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  absl::Status CopyToHost(StreamId, void* host, const void* device,
                          size_t bytes) override {
    if (bytes > 0) std::memcpy(host, device, bytes);
    return absl::OkStatus();
  }

  uint64_t RecordPoint(StreamId) override { return 0; }
  bool PointPassed(uint64_t) override { return true; }
  void WaitPoint(uint64_t) override {}
  absl::Status StreamStatus(StreamId) override { return absl::OkStatus(); }
  absl::Status Synchronize(StreamId) override { return absl::OkStatus(); }

 private:
  const KernelTable& kernels_ = CpuKernels();
  CpuKernelContext context_;
};

}  // namespace

std::unique_ptr<Device> NewCpuDevice(int threads) {
  return std::make_unique<CpuDevice>(threads);
}

}  // namespace holdfast
