// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans of cuDNN's graph API: a problem is described as a graph of operations,
// for which cuDNN proposes ways to compute it.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_KERNELS_CUDA_DNN_PLAN_H_
#define HOLDFAST_KERNELS_CUDA_DNN_PLAN_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "kernels/cuda/dnn_descriptor.h"
#include "kernels/numerics.h"
#include "ops/dtype.h"

namespace holdfast::cuda {

// Whom plans are for: the GPU of a handle, or, in tests, one of given
// properties (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR).
struct DnnTarget {
  cudnnHandle_t handle = nullptr;
  const DnnDescriptor* properties = nullptr;
};

// A tensor of a graph, by its name there; a number's data is the host's.
struct DnnPointer {
  int64_t id;
  const void* data;
};

cudnnDataType_t DnnType(DType dtype);

struct DnnLayout {
  cudnnDataType_t type;
  std::vector<int64_t> sizes, strides;
  int64_t alignment = 16;  // bytes
};
// Without gaps.
DnnLayout DnnPacked(cudnnDataType_t type, std::vector<int64_t> sizes);

// A way to compute a problem.
class DnnPlan {
 public:
  int64_t workspace() const { return workspace_; }  // bytes of scratch memory
  // Launches it on the handle's stream.
  cudnnStatus_t Run(const DnnLibrary& dnn, cudnnHandle_t handle,
                    absl::Span<const DnnPointer> tensors,
                    void* workspace) const;

 private:
  friend class DnnGraph;
  explicit DnnPlan(DnnDescriptor plan) : plan_(std::move(plan)) {}

  DnnDescriptor plan_;
  int64_t workspace_ = 0;
};

class DnnGraph;

// What a key begins with.
enum DnnKind : int64_t { kDnnConvolution, kDnnAttention };

// What is to be computed.
class DnnProblem {
 public:
  using Key = std::vector<int64_t>;  // equal for problems of equal plans
  virtual ~DnnProblem() = default;
  virtual Key key() const = 0;
  virtual void Describe(DnnGraph* graph) const = 0;
  // Whether an engine that notes this may compute it.
  virtual bool Allows(cudnnBackendNumericalNote_t note) const = 0;

  Numerics numerics;
};

// A problem's operations.
class DnnGraph {
 public:
  // `dnn` and what `target` names must outlive it.
  DnnGraph(const DnnLibrary& dnn, DnnTarget target)
      : dnn_(dnn), target_(target) {}

  const DnnLibrary& dnn() const { return dnn_; }
  enum class Place { kMemory, kVirtual, kNumber };
  DnnDescriptor Tensor(int64_t id, const DnnLayout& layout,
                       Place place = Place::kMemory) const;
  // `operation` is complete but for Finalize.
  void Add(DnnDescriptor operation);

  // Up to `most` plans for `problem`, which it describes, the most promising
  // first, that need at most `workspace` bytes; none where cuDNN cannot
  // compute it. `refused`, if given, is told why each other one is none.
  std::vector<DnnPlan> Plans(
      const DnnProblem& problem, size_t most, int64_t workspace,
      std::vector<cudnnStatus_t>* refused = nullptr) const;

 private:
  // Configurations of engines that a heuristic proposes.
  std::vector<DnnDescriptor> Propose(const DnnDescriptor& graph,
                                     cudnnBackendHeurMode_t mode) const;
  bool IsAllowed(const DnnProblem& problem,
                 const DnnDescriptor& configuration) const;
  // Adds the configuration's plan, if there is one.
  cudnnStatus_t Build(const DnnDescriptor& configuration, int64_t workspace,
                      std::vector<DnnPlan>* plans) const;

  const DnnLibrary& dnn_;
  const DnnTarget target_;
  std::vector<DnnDescriptor> operations_;
};

// The problem's graph and its plans.
std::vector<DnnPlan> FindDnnPlans(const DnnLibrary& dnn, DnnTarget target,
                                  const DnnProblem& problem, size_t most,
                                  int64_t workspace);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_DNN_PLAN_H_
