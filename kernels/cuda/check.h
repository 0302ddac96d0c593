// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of elements on the device. They wait for their answer: an op that
// checks its data has its verdict when its kernel function returns. Where the
// answer is known (CudaContext::data_checked) nothing is looked at and nothing
// waited for; the host's build looks all the same, so that tests see what was
// known wrongly.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_CHECK_H_
#define HOLDFAST_KERNELS_CUDA_CHECK_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/atomics.h"
#include "kernels/cuda/launch.h"
#include "ops/op_schema.h"

namespace holdfast::cuda {

#ifdef __CUDACC__
inline constexpr bool kDoubtsKnown = false;
#else
inline constexpr bool kDoubtsKnown = true;
#endif

// The smallest 0 <= i < n for which step(i) says that something is wrong, or
// -1; step(i) is called for all i.
template <typename F>
absl::StatusOr<int64_t> FirstFaultOfSteps(KernelContext& context, int64_t n,
                                          F step) {
  if (n <= 0) return -1;
  if (Cuda(context).data_checked && !kDoubtsKnown) {
    absl::Status s =
        ForEach(context, n, [=] HOLDFAST_LAMBDA(int64_t i) { step(i); });
    if (!s.ok()) return s;
    return -1;
  }
  uint64_t* found = ScratchOf<uint64_t>(context, 1);
  if (found == nullptr) return NoScratch();
  absl::Status s = Cuda(context).FillBytes(found, 0xff, sizeof(*found));
  if (!s.ok()) return s;
  s = ForEach(context, n, [=] HOLDFAST_LAMBDA(int64_t i) {
    if (step(i)) AtomicMin(found, static_cast<uint64_t>(i));
  });
  if (!s.ok()) return s;
  uint64_t first = 0;
  s = Cuda(context).CopyToHost(&first, found, sizeof(first));
  if (!s.ok()) return s;
  const int64_t fault = static_cast<int64_t>(first);  // all ones is -1
  if (fault >= 0 && Cuda(context).data_checked) {
    return absl::InternalError(
        absl::StrCat("element ", fault, " was known to be right, and is not"));
  }
  return fault;
}

// The same of a predicate, which need not be called.
template <typename F>
absl::StatusOr<int64_t> FirstFault(KernelContext& context, int64_t n,
                                   F faulty) {
  if (Cuda(context).data_checked && !kDoubtsKnown) return -1;
  return FirstFaultOfSteps(context, n, faulty);
}

HOLDFAST_HD bool InRange(int64_t index, int64_t size) {
  return static_cast<uint64_t>(index) < static_cast<uint64_t>(size);
}

// "[gather] index 7 is out of bounds for dimension 0 with size 5."
inline absl::Status BadIndex(const Attrs& attrs, int64_t index, int dim,
                             int64_t size) {
  return absl::OutOfRangeError(absl::StrCat(
      "[", attrs.schema().name, "] index ", index,
      " is out of bounds for dimension ", dim, " with size ", size, "."));
}

// One element of device memory. Waits.
template <typename T>
absl::StatusOr<T> ReadElement(KernelContext& context, const T* device) {
  T value;
  absl::Status s = Cuda(context).CopyToHost(&value, device, sizeof(T));
  if (!s.ok()) return s;
  return value;
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_CHECK_H_
