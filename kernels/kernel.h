// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a kernel is: a function over tensor views. Kernels never allocate
// their outputs (the executor does, from the inferred spec) and never see
// handles, sessions or the tape. Inputs have passed inference; element values
// (indices) have not been checked by anybody: a kernel checks those itself.
// Thread-safety: kernels are reentrant; one call may use several threads.
#ifndef HOLDFAST_KERNELS_KERNEL_H_
#define HOLDFAST_KERNELS_KERNEL_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ops/attrs.h"
#include "ops/tensor_spec.h"

namespace holdfast {

// A tensor's elements in device memory. `data` points at element 0 of the view
// (the spec's offset is already applied). data == nullptr && spec == nullptr:
// absent optional tensor. Does not own anything.
struct TensorView {
  void* data = nullptr;
  const TensorSpec* spec = nullptr;

  bool present() const { return spec != nullptr; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// Position in a Philox stream: a kernel that draws n numbers uses counters
// offset .. offset + n - 1 (element i uses counter offset + i), so results do
// not depend on the thread count.
struct PhiloxState {
  uint64_t seed = 0;
  uint64_t offset = 0;
};

class KernelContext {
 public:
  virtual ~KernelContext() = default;
  // Threads a kernel may use, itself included; >= 1.
  int num_threads = 1;
  PhiloxState philox;
  // For an op whose sizes depend on data: what its SizesFn found on the way and
  // its kernel goes on with. Scratch memory, valid until the kernel returns.
  void* carried = nullptr;
  // Scratch memory on the device, 64-byte aligned, valid until the kernel
  // returns; nullptr when memory is short (return ResourceExhausted then).
  virtual void* Scratch(size_t bytes) = 0;
};

// `inputs` in slot order (absent ones not present()); a number passed for an
// operand arrives as a rank-0 view of the computation type. `outputs` are
// allocated, and contiguous unless the call is in-place: then outputs[0] is
// inputs[0]'s own view (any strides) and the kernel must cope with the alias.
// Other inputs never partially overlap an output. Ops flagged kMutates write
// their `!` inputs and have no outputs.
using KernelFn = absl::Status (*)(KernelContext& context, const Attrs& attrs,
                                  absl::Span<const TensorView> inputs,
                                  absl::Span<const TensorView> outputs);

// The companion of the kernel of an op of unknown sizes, which runs before it
// on the same inputs: fills in the sizes that inference left unknown, in the
// order in which they stand in the outputs' shapes. The elements may change
// before the kernel runs (a client may share the memory): the kernel must stay
// inside outputs of these sizes all the same. A kDataShape op's kernel writes
// all of them. A kDeviceSized op's companion looks at no element: it may run
// while launches before it are withheld (server/replay).
using SizesFn = absl::Status (*)(KernelContext& context, const Attrs& attrs,
                                 absl::Span<const TensorView> inputs,
                                 absl::Span<int64_t> sizes);

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_KERNEL_H_
