// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DnnPlans: what cuDNN proposes for a problem is built into a plan once and
// kept. Where it has nothing for one, the caller's own kernel takes over.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_KERNELS_CUDA_DNN_PLANS_H_
#define HOLDFAST_KERNELS_CUDA_DNN_PLANS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "kernels/cuda/dnn_plan.h"

namespace holdfast::cuda {

// The plans of one device.
class DnnPlans {
 public:
  // `dnn` must outlive it.
  explicit DnnPlans(const DnnLibrary& dnn) : dnn_(dnn) {}

  const DnnLibrary& dnn() const { return dnn_; }
  // Computes the problem on `stream`; false where the caller has to do it
  // himself. `scratch` gives device memory until the op's end, or null.
  bool Run(const DnnProblem& problem, absl::Span<const DnnPointer> tensors,
           cudaStream_t stream, absl::FunctionRef<void*(size_t)> scratch);
  // How often all plans were thrown away.
  uint64_t dropped() const { return dropped_; }

 private:
  // The fastest of the plans, by trying. Outputs are written.
  std::optional<DnnPlan> Fastest(std::vector<DnnPlan> plans,
                                 absl::Span<const DnnPointer> tensors,
                                 cudaStream_t stream,
                                 absl::FunctionRef<void*(size_t)> scratch);

  const DnnLibrary& dnn_;
  std::map<DnnProblem::Key, std::optional<DnnPlan>> plans_;
  uint64_t dropped_ = 0;
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_DNN_PLANS_H_
