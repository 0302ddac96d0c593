// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A convolution as a graph of one operation.
#include "kernels/cuda/dnn_convolution.h"

namespace holdfast::cuda {
namespace {

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

DnnDescriptor Convolution(const DnnLibrary& dnn,
                          const ConvolutionProblem& problem) {
  const ConvShape& shape = problem.shape;
  const cudnnDataType_t sums =
      problem.dtype == DType::kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const std::vector<int64_t> padding =
      PerAxis(shape, [](const WindowAxis& a) { return a.padding; });
  DnnDescriptor d(dnn, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
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

}  // namespace

DnnProblem::Key ConvolutionProblem::key() const {
  Key key = {kDnnConvolution,
             static_cast<int64_t>(pass),
             static_cast<int64_t>(dtype),
             shape.axes,
             shape.samples,
             shape.in_channels,
             shape.out_channels,
             shape.groups,
             alignment};
  for (const WindowAxis& axis : shape.windows.axis) {
    key.insert(key.end(), {axis.kernel, axis.stride, axis.padding,
                           axis.dilation, axis.size, axis.out});
  }
  for (bool value :
       {numerics.conv_tf32, numerics.deterministic, numerics.benchmark}) {
    key.push_back(value);
  }
  return key;
}

bool ConvolutionProblem::Allows(cudnnBackendNumericalNote_t note) const {
  const bool exact = dtype == DType::kFloat32 && !numerics.conv_tf32;
  switch (note) {
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      return !numerics.deterministic;
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:  // of float32: TF32's
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      return !exact;
    default:
      return true;
  }
}

void ConvolutionProblem::Describe(DnnGraph* graph) const {
  const Operation names = OperationOf(pass);
  const auto tensor = [&](int64_t id, std::vector<int64_t> sizes) {
    DnnLayout layout = DnnPacked(DnnType(dtype), std::move(sizes));
    layout.alignment = alignment;
    return graph->Tensor(id, layout);
  };
  DnnDescriptor operation(graph->dnn(), names.type);
  operation.Set(names.x,
                tensor(kX, Sizes(shape.samples, shape.in_channels, shape,
                                 [](const WindowAxis& a) { return a.size; })));
  operation.Set(
      names.w, tensor(kW, Sizes(shape.out_channels, shape.group_in(), shape,
                                [](const WindowAxis& a) { return a.kernel; })));
  operation.Set(names.y,
                tensor(kY, Sizes(shape.samples, shape.out_channels, shape,
                                 [](const WindowAxis& a) { return a.out; })));
  operation.Set(names.convolution, Convolution(graph->dnn(), *this));
  if (dtype == DType::kFloat64) {
    const double one = 1, zero = 0;
    operation.Set(names.alpha, CUDNN_TYPE_DOUBLE, 1, &one);
    operation.Set(names.beta, CUDNN_TYPE_DOUBLE, 1, &zero);
  } else {
    const float one = 1, zero = 0;
    operation.Set(names.alpha, CUDNN_TYPE_FLOAT, 1, &one);
    operation.Set(names.beta, CUDNN_TYPE_FLOAT, 1, &zero);
  }
  graph->Add(std::move(operation));
}

}  // namespace holdfast::cuda
