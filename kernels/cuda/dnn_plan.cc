// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DnnPlanner: a convolution as a graph of one operation, and plans for it.
#include <algorithm>

#include "kernels/cuda/dnn_convolution.h"

namespace holdfast {
namespace {

constexpr int64_t kX = 1, kW = 2, kY = 3;  // the graph's names of the tensors

cudnnDataType_t ElementType(DType dtype) {
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

// The attributes of an operation, per pass.
struct Operation {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};

Operation OperationOf(ConvPass pass) {
  switch (pass) {
    case ConvPass::kBackwardInput:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvPass::kBackwardWeight:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  }
}

// One number for each spatial axis.
template <typename F>
std::vector<int64_t> PerAxis(const ConvShape& shape, F f) {
  std::vector<int64_t> values;
  for (int i = 3 - shape.axes; i < 3; ++i) {
    values.push_back(f(shape.windows.axis[i]));
  }
  return values;
}

template <typename F>
std::vector<int64_t> Sizes(int64_t first, int64_t second,
                           const ConvShape& shape, F f) {
  std::vector<int64_t> sizes = PerAxis(shape, f);
  sizes.insert(sizes.begin(), {first, second});
  return sizes;
}

}  // namespace

DnnProblem::Key DnnProblem::key() const {
  Key key = {static_cast<int64_t>(pass),
             static_cast<int64_t>(dtype),
             shape.axes,
             shape.samples,
             shape.in_channels,
             shape.out_channels,
             shape.groups,
             alignment};
  size_t at = 8;
  for (const WindowAxis& axis : shape.windows.axis) {
    for (int64_t value : {axis.kernel, axis.stride, axis.padding, axis.dilation,
                          axis.size, axis.out}) {
      key[at++] = value;
    }
  }
  for (bool value :
       {numerics.conv_tf32, numerics.deterministic, numerics.benchmark}) {
    key[at++] = value;
  }
  return key;
}

cudnnStatus_t DnnPlan::Run(const DnnLibrary& dnn, cudnnHandle_t handle,
                           const ConvTensors& tensors, void* workspace) const {
  DnnDescriptor pack(dnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const void* const pointers[] = {tensors.x, tensors.w, tensors.y};
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {kX, kW, kY});
  pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3,
           pointers);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
           &workspace);
  if (!pack.Finalize()) return pack.status();
  return dnn.cudnnBackendExecute(handle, plan_.handle(), pack.handle());
}

DnnPlanner::DnnPlanner(const DnnLibrary& dnn, DnnTarget target,
                       const DnnProblem& problem)
    : dnn_(dnn), target_(target), problem_(problem) {
  MakeGraph();
}

DnnDescriptor DnnPlanner::Tensor(int64_t id,
                                 const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i > 0; --i) {
    strides[i - 1] = strides[i] * sizes[i];
  }
  const cudnnDataType_t type = ElementType(problem_.dtype);
  DnnDescriptor tensor(dnn_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  tensor.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  tensor.Set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, {id});
  tensor.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {problem_.alignment});
  tensor.Finalize();
  return tensor;
}

DnnDescriptor DnnPlanner::Convolution() {
  const ConvShape& shape = problem_.shape;
  const cudnnDataType_t sums =
      problem_.dtype == DType::kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const std::vector<int64_t> padding =
      PerAxis(shape, [](const WindowAxis& a) { return a.padding; });
  DnnDescriptor d(dnn_, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  d.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
  d.Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1,
        &mode);
  d.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {shape.axes});
  d.Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, padding);
  d.Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, padding);
  d.Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
        PerAxis(shape, [](const WindowAxis& a) { return a.stride; }));
  d.Set(CUDNN_ATTR_CONVOLUTION_DILATIONS,
        PerAxis(shape, [](const WindowAxis& a) { return a.dilation; }));
  d.Finalize();
  return d;
}

void DnnPlanner::SetTarget(DnnDescriptor* descriptor,
                           cudnnBackendAttributeName_t handle,
                           cudnnBackendAttributeName_t properties) {
  if (target_.properties != nullptr) {
    descriptor->Set(properties, *target_.properties);
  } else {
    descriptor->Set(handle, CUDNN_TYPE_HANDLE, 1, &target_.handle);
  }
}

void DnnPlanner::MakeGraph() {
  const ConvShape& shape = problem_.shape;
  const Operation names = OperationOf(problem_.pass);
  const DnnDescriptor x =
      Tensor(kX, Sizes(shape.samples, shape.in_channels, shape,
                       [](const WindowAxis& a) { return a.size; }));
  const DnnDescriptor w =
      Tensor(kW, Sizes(shape.out_channels, shape.group_in(), shape,
                       [](const WindowAxis& a) { return a.kernel; }));
  const DnnDescriptor y =
      Tensor(kY, Sizes(shape.samples, shape.out_channels, shape,
                       [](const WindowAxis& a) { return a.out; }));
  DnnDescriptor operation(dnn_, names.type);
  operation.Set(names.x, x);
  operation.Set(names.w, w);
  operation.Set(names.y, y);
  operation.Set(names.convolution, Convolution());
  if (problem_.dtype == DType::kFloat64) {
    const double one = 1, zero = 0;
    operation.Set(names.alpha, CUDNN_TYPE_DOUBLE, 1, &one);
    operation.Set(names.beta, CUDNN_TYPE_DOUBLE, 1, &zero);
  } else {
    const float one = 1, zero = 0;
    operation.Set(names.alpha, CUDNN_TYPE_FLOAT, 1, &one);
    operation.Set(names.beta, CUDNN_TYPE_FLOAT, 1, &zero);
  }
  operation.Finalize();
  graph_.emplace(dnn_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target_.properties == nullptr) {
    graph_->Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
                &target_.handle);
  }
  graph_->Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  graph_->Finalize();
}

std::vector<DnnDescriptor> DnnPlanner::Propose(cudnnBackendHeurMode_t mode) {
  DnnDescriptor heuristic(dnn_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph_);
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

bool DnnPlanner::IsAllowed(const DnnDescriptor& configuration) {
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
  const bool exact =
      problem_.dtype == DType::kFloat32 && !problem_.numerics.conv_tf32;
  return std::none_of(notes, notes + count, [&](auto note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        return problem_.numerics.deterministic;
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:  // of float32: TF32's
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        return exact;
      default:
        return false;
    }
  });
}

std::optional<DnnPlan> DnnPlanner::Build(const DnnDescriptor& configuration) {
  DnnDescriptor plan(dnn_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  SetTarget(&plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
            CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (!plan.Finalize()) return std::nullopt;
  DnnPlan result(std::move(plan));
  if (result.plan_.Get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                       CUDNN_TYPE_INT64, 1, &result.workspace_) != 1) {
    return std::nullopt;
  }
  return result;
}

std::vector<DnnPlan> DnnPlanner::Plans(size_t most, int64_t workspace) {
  std::vector<DnnPlan> plans;
  if (!graph_->ok()) return plans;
  // The second one knows engines that compute nearly anything, slowly.
  for (cudnnBackendHeurMode_t mode :
       {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const DnnDescriptor& configuration : Propose(mode)) {
      if (plans.size() >= most) return plans;
      if (!IsAllowed(configuration)) continue;
      std::optional<DnnPlan> plan = Build(configuration);
      if (plan && plan->workspace() <= workspace) {
        plans.push_back(*std::move(plan));
      }
    }
    if (!plans.empty()) return plans;
  }
  return plans;
}

}  // namespace holdfast
