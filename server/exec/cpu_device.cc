// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device: kernels run inside Launch, on the worker thread and the
// threads it forks.
#include "server/exec/cpu_device.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/fftw.h"
#include "kernels/kernel_table.h"
#include "kernels/widened.h"
#include "ops/op_schema.h"
#include "server/exec/thread_choice.h"
#include "server/memory/host_memory.h"
#include "server/waits/no_wait.h"

namespace holdfast {
namespace {

absl::Status CopyAll(KernelContext& context, const TensorView& from,
                     const TensorView& to) {
  cpu::CopyStrided(context, from, to);
  return absl::OkStatus();
}

// Scratch memory grows to the largest kernel's need and is reused. What a
// kernel uses of it is on the account of the session that it runs for.
class CpuKernelContext final : public KernelContext {
 public:
  explicit CpuKernelContext(std::unique_ptr<ScratchCharge> charge)
      : charge_(std::move(charge)) {}

  void* Scratch(size_t bytes) override {
    constexpr size_t kAlignment = 64;
    if (bytes >= kCounted && !Charge(bytes)) return nullptr;
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

  // Ends a kernel. Large scratch is not hoarded for ever: what is kept is the
  // daemon's own, on nobody's account.
  void Reset() {
    constexpr size_t kKeepBytes = size_t{128} << 20;
    refusal_ = absl::OkStatus();
    size_t kept = 0;
    std::vector<Chunk> surplus;
    for (auto it = chunks_.begin(); it != chunks_.end();) {
      it->used = false;
      kept += it->bytes;
      if (kept <= kKeepBytes) {
        ++it;
      } else {
        surplus.push_back(std::move(*it));
        it = chunks_.erase(it);
      }
    }
    if (!surplus.empty()) GiveBack(&surplus);
    if (charge_ != nullptr) charge_->Clear();
  }
  bool used() const { return !chunks_.empty() || !refusal_.ok(); }
  // A kernel's status; where scratch memory was refused, whose limit it was.
  absl::Status Explained(const Attrs& attrs, absl::Status status) const {
    if (refusal_.ok() || !absl::IsResourceExhausted(status)) return status;
    return absl::ResourceExhaustedError(
        absl::StrCat("[", attrs.schema().name, "] out of memory for its ",
                     "workspace: ", refusal_.message()));
  }

 private:
  // Less is what every kernel takes.
  static constexpr size_t kCounted = size_t{1} << 20;

  bool Charge(size_t bytes) {
    if (charge_ == nullptr) return true;
    absl::Status status = charge_->Add(bytes);
    if (!status.ok()) {
      refusal_ = absl::ResourceExhaustedError(absl::StrFormat(
          "asked=%.1f MiB (%s)", bytes / 1048576.0, status.message()));
    }
    return status.ok();
  }

  struct Deleter {
    void operator()(void* data) const { std::free(data); }
  };
  struct Chunk {
    std::unique_ptr<void, Deleter> data;
    size_t bytes;
    bool used;
  };

  // The system takes some 0.1 s for a GiB, in which others are looked after.
  static void GiveBack(std::vector<Chunk>* surplus) {
    Aside* const aside = NoWait::aside();
    if (aside != nullptr) {
      aside->Run([surplus] { surplus->clear(); });
    } else {
      surplus->clear();
    }
  }

  std::vector<Chunk> chunks_;
  const std::unique_ptr<ScratchCharge> charge_;  // null: nobody counts
  absl::Status refusal_;                         // what it was told
};

class CpuDevice final : public Device {
 public:
  CpuDevice(int threads, std::unique_ptr<ScratchCharge> charge)
      : threads_(threads), context_(std::move(charge)) {
    context_.num_threads = threads;
  }

  absl::string_view name() const override { return "cpu"; }
  std::string description() const override {
    return absl::StrCat("cpu, ", threads_, " threads");
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

  void SetStop(StopSignal* stop) override { context_.stop = stop; }

  absl::Status Launch(StreamId, PhiloxState philox, const Attrs& attrs,
                      absl::Span<const TensorView> inputs,
                      absl::Span<const TensorView> outputs) override {
    context_.philox = philox;
    const uint64_t key =
        threads_ > 1 ? ThreadChoiceKey(attrs, inputs, outputs) : 0;
    if (key == 0) return Run(attrs, inputs, outputs);
    const int64_t start = Now();
    if (choice_.Choose(key, start) == ThreadChoice::kAlone) {
      context_.num_threads = 1;
    }
    // Also after an exception.
    const auto took = absl::MakeCleanup([this, start] {
      context_.num_threads = threads_;
      choice_.Took(Now() - start);
    });
    return Run(attrs, inputs, outputs);
  }

  absl::Status ComputeSizes(StreamId, const Attrs& attrs,
                            absl::Span<const TensorView> inputs,
                            absl::Span<int64_t> sizes) override {
    if (context_.used()) context_.Reset();  // the kernel may not have followed
    context_.carried = nullptr;
    const SizesFn sizes_of =
        kernels_.sizes[static_cast<int>(attrs.schema().id)];
    absl::Status status = sizes_of(context_, attrs, inputs, sizes);
    if (Stopped()) status = context_.stop->why();
    return status.ok() ? status : context_.Explained(attrs, std::move(status));
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
  // The kernel may have left off.
  bool Stopped() const {
    return context_.stop != nullptr &&
           ABSL_PREDICT_FALSE(context_.stop->stopped());
  }
  static int64_t Now() {
    return std::chrono::nanoseconds(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  absl::Status Run(const Attrs& attrs, absl::Span<const TensorView> inputs,
                   absl::Span<const TensorView> outputs) {
    const auto reset = absl::MakeCleanup([this] {
      if (context_.used()) context_.Reset();
    });
    const KernelFn kernel =
        kernels_.kernels[static_cast<int>(attrs.schema().id)];
    absl::Status status =
        !attrs.schema().has(kAnyDType) && NeedsWidening(inputs, outputs)
            ? RunWidened(kernel, &CopyAll, context_, attrs, inputs, outputs)
            : kernel(context_, attrs, inputs, outputs);
    if (Stopped()) status = context_.stop->why();
    if (!status.ok()) status = context_.Explained(attrs, std::move(status));
    return status;
  }

  const int threads_;
  const KernelTable& kernels_ = cpu::CpuKernels();
  CpuKernelContext context_;
  ThreadChoice choice_;
};

}  // namespace

std::unique_ptr<Device> NewCpuDevice(int threads,
                                     std::unique_ptr<ScratchCharge> charge) {
  // Here, and not by the thread that runs ops: it reads files.
  cpu::OpenFftw();
  return std::make_unique<CpuDevice>(threads, std::move(charge));
}

}  // namespace holdfast
