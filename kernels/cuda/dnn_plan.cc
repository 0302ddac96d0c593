// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dnn_plan.h"

#include <algorithm>

namespace holdfast::cuda {

cudnnDataType_t DnnType(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return CUDNN_DATA_HALF;
    case DType::kBFloat16:
      return CUDNN_DATA_BFLOAT16;
    case DType::kFloat64:
      return CUDNN_DATA_DOUBLE;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

DnnLayout DnnPacked(cudnnDataType_t type, std::vector<int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i > 0; --i) {
    strides[i - 1] = strides[i] * sizes[i];
  }
  return {type, std::move(sizes), std::move(strides)};
}

cudnnStatus_t DnnPlan::Run(const DnnLibrary& dnn, cudnnHandle_t handle,
                           absl::Span<const DnnPointer> tensors,
                           void* workspace) const {
  std::vector<int64_t> ids;
  std::vector<const void*> pointers;
  for (const DnnPointer& tensor : tensors) {
    ids.push_back(tensor.id);
    pointers.push_back(tensor.data);
  }
  DnnDescriptor pack(dnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           static_cast<int64_t>(pointers.size()), pointers.data());
  pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
           &workspace);
  if (!pack.Finalize()) return pack.status();
  return dnn.cudnnBackendExecute(handle, plan_.handle(), pack.handle());
}

DnnDescriptor DnnGraph::Tensor(int64_t id, const DnnLayout& layout,
                               Place place) const {
  DnnDescriptor tensor(dnn_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
             &layout.type);
  tensor.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, layout.sizes);
  tensor.Set(CUDNN_ATTR_TENSOR_STRIDES, layout.strides);
  tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, {id});
  tensor.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {layout.alignment});
  const bool yes = true;
  if (place == Place::kVirtual) {
    tensor.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
  }
  if (place == Place::kNumber) {
    tensor.Set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
  }
  tensor.Finalize();
  return tensor;
}

void DnnGraph::Add(DnnDescriptor operation) {
  operation.Finalize();
  operations_.push_back(std::move(operation));
}

std::vector<DnnDescriptor> DnnGraph::Propose(
    const DnnDescriptor& graph, cudnnBackendHeurMode_t mode) const {
  DnnDescriptor heuristic(dnn_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (target_.properties != nullptr) {
    heuristic.Set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target_.properties);
  }
  std::vector<DnnDescriptor> found;
  if (!heuristic.Finalize()) return found;
  const int64_t count = heuristic.Get(
      CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < count; ++i) {
    found.emplace_back(dnn_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    handles.push_back(found.back().handle());
  }
  // Fills in the descriptors that it is given.
  const int64_t filled =
      heuristic.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                    CUDNN_TYPE_BACKEND_DESCRIPTOR, count, handles.data());
  while (static_cast<int64_t>(found.size()) > filled) found.pop_back();
  return found;
}

bool DnnGraph::IsAllowed(const DnnProblem& problem,
                         const DnnDescriptor& configuration) const {
  const DnnDescriptor engine(dnn_, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.handle();
  if (configuration.Get(CUDNN_ATTR_ENGINECFG_ENGINE,
                        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle) != 1) {
    return false;
  }
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  const int64_t count =
      engine.Get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
  return std::all_of(notes, notes + count,
                     [&](auto note) { return problem.Allows(note); });
}

cudnnStatus_t DnnGraph::Build(const DnnDescriptor& configuration,
                              int64_t workspace,
                              std::vector<DnnPlan>* plans) const {
  DnnDescriptor plan(dnn_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target_.properties != nullptr) {
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target_.properties);
  } else {
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
             &target_.handle);
  }
  plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (!plan.Finalize()) return plan.status();
  DnnPlan result(std::move(plan));
  if (result.plan_.Get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                       CUDNN_TYPE_INT64, 1, &result.workspace_) != 1 ||
      result.workspace_ > workspace) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  plans->push_back(std::move(result));
  return CUDNN_STATUS_SUCCESS;
}

std::vector<DnnPlan> DnnGraph::Plans(
    const DnnProblem& problem, size_t most, int64_t workspace,
    std::vector<cudnnStatus_t>* refused) const {
  std::vector<DnnPlan> plans;
  DnnDescriptor graph(dnn_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target_.properties == nullptr) {
    graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
              &target_.handle);
  }
  graph.SetAll(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  if (!graph.Finalize()) return plans;
  // The second one knows engines that compute nearly anything, slowly.
  for (cudnnBackendHeurMode_t mode :
       {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const DnnDescriptor& configuration : Propose(graph, mode)) {
      if (plans.size() >= most) return plans;
      if (!IsAllowed(problem, configuration)) continue;
      const cudnnStatus_t status = Build(configuration, workspace, &plans);
      if (status != CUDNN_STATUS_SUCCESS && refused != nullptr) {
        refused->push_back(status);
      }
    }
    if (!plans.empty()) return plans;
  }
  return plans;
}

std::vector<DnnPlan> FindDnnPlans(const DnnLibrary& dnn, DnnTarget target,
                                  const DnnProblem& problem, size_t most,
                                  int64_t workspace) {
  DnnGraph graph(dnn, target);
  problem.Describe(&graph);
  return graph.Plans(problem, most, workspace);
}

}  // namespace holdfast::cuda
