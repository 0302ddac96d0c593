// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions by cuDNN's graph API: what cuDNN proposes for a convolution is
// built into a plan once and kept (DnnConvolutions). Where cuDNN is missing, or
// has nothing for a convolution, the caller's own kernel takes over.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_KERNELS_CUDA_DNN_CONVOLUTION_H_
#define HOLDFAST_KERNELS_CUDA_DNN_CONVOLUTION_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/cuda/conv_shape.h"
#include "kernels/cuda/dnn_descriptor.h"
#include "kernels/numerics.h"
#include "ops/dtype.h"

namespace holdfast {

struct DnnProblem {
  ConvPass pass = ConvPass::kForward;
  DType dtype = DType::kFloat32;  // of the elements
  ConvShape shape;
  int64_t alignment = 16;  // bytes that all three tensors are aligned to
  Numerics numerics;

  using Key = std::array<int64_t, 32>;
  Key key() const;
};

// Whom plans are for: the GPU of a handle, or, in tests, one of given
// properties (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR).
struct DnnTarget {
  cudnnHandle_t handle = nullptr;
  const DnnDescriptor* properties = nullptr;
};

// A way to compute a problem.
class DnnPlan {
 public:
  int64_t workspace() const { return workspace_; }  // bytes of scratch memory
  // Launches it on the handle's stream.
  cudnnStatus_t Run(const DnnLibrary& dnn, cudnnHandle_t handle,
                    const ConvTensors& tensors, void* workspace) const;

 private:
  friend class DnnPlanner;
  explicit DnnPlan(DnnDescriptor plan) : plan_(std::move(plan)) {}

  DnnDescriptor plan_;
  int64_t workspace_ = 0;
};

// Finds plans for one problem, the most promising first.
class DnnPlanner {
 public:
  DnnPlanner(const DnnLibrary& dnn, DnnTarget target,
             const DnnProblem& problem);
  // Up to `most` plans that need at most `workspace` bytes; none where cuDNN
  // cannot compute the problem.
  std::vector<DnnPlan> Plans(size_t most, int64_t workspace);

 private:
  DnnDescriptor Tensor(int64_t id, const std::vector<int64_t>& sizes);
  DnnDescriptor Convolution();
  void MakeGraph();
  // Configurations of engines that a heuristic proposes.
  std::vector<DnnDescriptor> Propose(cudnnBackendHeurMode_t mode);
  bool IsAllowed(const DnnDescriptor& configuration);
  std::optional<DnnPlan> Build(const DnnDescriptor& configuration);
  void SetTarget(DnnDescriptor* descriptor, cudnnBackendAttributeName_t handle,
                 cudnnBackendAttributeName_t properties);

  const DnnLibrary& dnn_;
  const DnnTarget target_;
  const DnnProblem& problem_;
  std::optional<DnnDescriptor> graph_;
};

// The plans of one device.
class DnnConvolutions {
 public:
  // `dnn` must outlive it.
  explicit DnnConvolutions(const DnnLibrary& dnn) : dnn_(dnn) {}

  // Computes the problem on `stream`; false where the caller has to do it
  // himself. `scratch` gives device memory until the op's end, or null.
  bool Run(const DnnProblem& problem, const ConvTensors& tensors,
           cudaStream_t stream, absl::FunctionRef<void*(size_t)> scratch);
  // How often all plans were thrown away.
  uint64_t dropped() const { return dropped_; }

 private:
  // The fastest of the plans, by trying. `tensors` are written.
  std::optional<DnnPlan> Fastest(std::vector<DnnPlan> plans,
                                 const ConvTensors& tensors,
                                 cudaStream_t stream,
                                 absl::FunctionRef<void*(size_t)> scratch);

  const DnnLibrary& dnn_;
  std::map<DnnProblem::Key, std::optional<DnnPlan>> plans_;
  uint64_t dropped_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_DNN_CONVOLUTION_H_
