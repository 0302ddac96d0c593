// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/host_ops.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/device.h"
#include "kernels/number_operand.h"
#include "kernels/widened.h"
#include "ops/op_schema.h"

namespace holdfast::cuda {
namespace {

// The operands of one call in host memory, contiguous. Views of the same memory
// stay so: an in-place call has its target on both sides.
class HostOperands {
 public:
  explicit HostOperands(KernelContext& context) : context_(context) {}

  // `load`: the kernel reads it.
  absl::StatusOr<TensorView> Add(const TensorView& view, bool load) {
    if (!view.present() || IsNumber(view)) return view;
    if (const Operand* known = Find(view)) return known->host;
    Operand& operand = operands_.emplace_back();
    operand.device = view;
    operand.spec = ContiguousSpec(view.spec->dtype, view.spec->shape);
    constexpr size_t kAlignment = 64;
    const size_t bytes = operand.spec.nbytes();
    operand.memory.reset(std::aligned_alloc(
        kAlignment, (bytes + kAlignment) / kAlignment * kAlignment));
    if (operand.memory == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no host memory for ", view.spec->ToString()));
    }
    operand.host = {operand.memory.get(), &operand.spec};
    if (load && bytes > 0) {
      absl::Status s = Load(view, bytes, operand.memory.get());
      if (!s.ok()) return s;
    }
    return operand.host;
  }

  // After the kernel has written it.
  absl::Status Store(const TensorView& view) {
    const Operand* operand = view.present() ? Find(view) : nullptr;
    const size_t bytes = operand == nullptr ? 0 : operand->spec.nbytes();
    if (bytes == 0) return absl::OkStatus();
    if (view.spec->contiguous()) {
      return Cuda(context_).CopyToDevice(view.data, operand->host.data, bytes);
    }
    const TensorView dense = {context_.Scratch(bytes), &operand->spec};
    if (dense.data == nullptr) return NoScratch();
    absl::Status s =
        Cuda(context_).CopyToDevice(dense.data, operand->host.data, bytes);
    return s.ok() ? CudaCopy(context_, dense, view) : s;
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  struct Operand {
    TensorView device, host;
    TensorSpec spec;
    std::unique_ptr<void, Free> memory;
  };

  const Operand* Find(const TensorView& view) const {
    const auto found = std::find_if(operands_.begin(), operands_.end(),
                                    [&](const Operand& operand) {
                                      return operand.device.data == view.data &&
                                             *operand.device.spec == *view.spec;
                                    });
    return found == operands_.end() ? nullptr : &*found;
  }
  absl::Status Load(const TensorView& view, size_t bytes, void* host) {
    TensorSpec spec;
    TensorView dense;
    absl::Status s =
        MakeContiguous(context_, view, view.spec->dtype, &spec, &dense);
    return s.ok() ? Cuda(context_).CopyToHost(host, dense.data, bytes) : s;
  }

  KernelContext& context_;
  std::deque<Operand> operands_;  // their specs must not move
};

}  // namespace

absl::Status RunOnHost(KernelContext& context, const Attrs& attrs,
                       absl::Span<const TensorView> inputs,
                       absl::Span<const TensorView> outputs) {
  Device* const host = Cuda(context).host();
  if (host == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "[", attrs.schema().name,
        "] there is no CUDA kernel for this op yet. Run it on a daemon with "
        "--device=cpu."));
  }
  HostOperands operands(context);
  std::vector<TensorView> host_inputs, host_outputs;
  for (const TensorView& input : inputs) {
    absl::StatusOr<TensorView> view = operands.Add(input, /*load=*/true);
    if (!view.ok()) return view.status();
    host_inputs.push_back(*view);
  }
  for (const TensorView& output : outputs) {
    absl::StatusOr<TensorView> view = operands.Add(output, /*load=*/false);
    if (!view.ok()) return view.status();
    host_outputs.push_back(*view);
  }
  absl::Status s =
      host->Launch(0, context.philox, attrs, host_inputs, host_outputs);
  if (s.ok()) s = host->Synchronize(0);
  for (size_t i = 0; i < outputs.size() && s.ok(); ++i) {
    s = operands.Store(outputs[i]);
  }
  for (size_t i = 0; i < inputs.size() && s.ok(); ++i) {
    const OpSchema& op = attrs.schema();
    if (WritesInput(op, i, inputs.size())) s = operands.Store(inputs[i]);
  }
  return s;
}

}  // namespace holdfast::cuda
