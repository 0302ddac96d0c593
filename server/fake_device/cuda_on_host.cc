// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/fake_device/cuda_on_host.h"

#include <utility>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/fused_chain.h"
#include "kernels/cuda/host_context.h"
#include "kernels/cuda/recordable_ops.h"
#include "kernels/kernel_table.h"
#include "ops/op_schema.h"
#include "server/exec/cpu_device.h"

namespace holdfast {
namespace {

class CudaOnHost final : public Device {
 public:
  absl::string_view name() const override { return "cpu"; }
  std::string description() const override { return "CUDA kernels on the CPU"; }
  bool host_memory() const override { return true; }
  std::unique_ptr<DeviceMemory> CreateMemory(bool shared) override {
    return cpu_->CreateMemory(shared);
  }
  absl::Status PinHost(void*, size_t) override { return absl::OkStatus(); }
  void UnpinHost(void*) override {}
  absl::StatusOr<StreamId> CreateStream(int) override { return 0; }
  void DestroyStream(StreamId) override {}
  void SetNumerics(StreamId, const Numerics& numerics) override {
    context_.numerics = numerics;
  }

  absl::Status Launch(StreamId, PhiloxState philox, const Attrs& attrs,
                      absl::Span<const TensorView> inputs,
                      absl::Span<const TensorView> outputs) override {
    context_.philox = philox;
    absl::Status status = cuda::RunCudaOp(context_, attrs, inputs, outputs);
    context_.carried = nullptr;
    context_.FreeScratch();
    return status;
  }
  absl::Status ComputeSizes(StreamId, const Attrs& attrs,
                            absl::Span<const TensorView> inputs,
                            absl::Span<int64_t> sizes) override {
    context_.FreeScratch();
    context_.carried = nullptr;
    return cuda::RunCudaSizes(context_, attrs, inputs, sizes);
  }
  absl::Status Copy(StreamId, CopyKind kind, void* to, const void* from,
                    size_t bytes) override {
    return cpu_->Copy(0, kind, to, from, bytes);
  }
  absl::Status CopyFrom(StreamId, void* to, Device*, StreamId, const void* from,
                        size_t bytes) override {
    return cpu_->CopyFrom(0, to, nullptr, 0, from, bytes);
  }
  absl::Status CopyToHost(StreamId, void* host, const void* device,
                          size_t bytes) override {
    return cpu_->CopyToHost(0, host, device, bytes);
  }
  uint64_t RecordPoint(StreamId) override { return 0; }
  bool PointPassed(uint64_t) override { return true; }
  void WaitPoint(uint64_t) override {}
  absl::Status StreamStatus(StreamId) override { return absl::OkStatus(); }
  absl::Status Synchronize(StreamId) override { return absl::OkStatus(); }

 private:
  const std::unique_ptr<Device> cpu_ = NewCpuDevice(1);
  cuda::HostContext context_{cpu_.get()};
};

absl::Status RunChainOnHost(absl::Span<const LaunchRequest> requests) {
  cuda::HostContext context;
  return cuda::RunChain(context, requests);
}

}  // namespace

const Fuser kFuserOnHost = {&cuda::CanRecordCudaOp, &cuda::ChainLength,
                            &RunChainOnHost};

std::unique_ptr<Device> NewCudaOnHost() {
  return std::make_unique<CudaOnHost>();
}

}  // namespace holdfast
