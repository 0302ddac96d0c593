// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN plans for an H100 whether or not there is one: cuDNN takes a GPU's
// properties as JSON in its place. What the kernels compute needs a GPU.
#include <string>

#include "gtest/gtest.h"
#include "kernels/cuda/dnn_convolution.h"

namespace holdfast {
namespace {

constexpr char kH100[] = R"({
  "deviceName": "NVIDIA H100", "cudaDeviceId": 0, "deviceVer": 900,
  "driverVer": 13000, "multiProcessorCount": 132, "warpSize": 32,
  "smClockRateKHz": 1980000, "memClockRateKHz": 2619000,
  "l2CacheSize": 52428800, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
  "regsPerBlock": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
  "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1,
  "totalGlobalMem": 85000000000, "pciDeviceId": 0,
  "maxGridSize": [2147483647, 65535, 65535],
  "maxBlockSize": [1024, 1024, 64]
})";

class DnnPlanTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status opened = OpenDnn(&dnn_);
    if (!opened.ok()) GTEST_SKIP() << opened.message();
    properties_.emplace(dnn_, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    properties_->Set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                     sizeof(kH100), kH100);
    if (!properties_->Finalize()) {
      GTEST_SKIP() << "this cuDNN needs a GPU to plan for one";
    }
  }
  size_t Plans(const DnnProblem& problem) {
    DnnPlanner planner(dnn_, {nullptr, &*properties_}, problem);
    return planner.Plans(3, int64_t{1} << 30).size();
  }

  DnnLibrary dnn_;
  std::optional<DnnDescriptor> properties_;
};

// A layer of ResNet-50.
DnnProblem Layer(ConvPass pass, DType dtype) {
  DnnProblem problem;
  problem.pass = pass;
  problem.dtype = dtype;
  problem.shape.samples = 32;
  problem.shape.in_channels = 64;
  problem.shape.out_channels = 128;
  for (int i = 1; i < 3; ++i) {
    problem.shape.windows.axis[i] = {3, 2, 1, 1, 56, 28};
  }
  return problem;
}

constexpr ConvPass kPasses[] = {ConvPass::kForward, ConvPass::kBackwardInput,
                                ConvPass::kBackwardWeight};

TEST_F(DnnPlanTest, EveryPassHasPlansInEveryFloat) {
  for (ConvPass pass : kPasses) {
    for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                        DType::kFloat64}) {
      EXPECT_GT(Plans(Layer(pass, dtype)), 0u)
          << static_cast<int>(pass) << " " << DTypeName(dtype);
    }
  }
}

TEST_F(DnnPlanTest, ExactAndDeterministicPlansExist) {
  for (ConvPass pass : kPasses) {
    DnnProblem problem = Layer(pass, DType::kFloat32);
    problem.numerics.conv_tf32 = false;
    problem.numerics.deterministic = true;
    EXPECT_GT(Plans(problem), 0u) << static_cast<int>(pass);
  }
}

TEST_F(DnnPlanTest, GroupsDilationAndThreeAxes) {
  for (ConvPass pass : kPasses) {
    DnnProblem depthwise = Layer(pass, DType::kFloat32);
    depthwise.shape.groups = 64;
    depthwise.shape.out_channels = 64;
    EXPECT_GT(Plans(depthwise), 0u) << static_cast<int>(pass);
    DnnProblem wide = Layer(pass, DType::kFloat32);
    for (int i = 1; i < 3; ++i) {
      wide.shape.windows.axis[i] = {3, 1, 2, 2, 56, 56};
    }
    EXPECT_GT(Plans(wide), 0u) << static_cast<int>(pass);
    DnnProblem deep = Layer(pass, DType::kFloat32);
    deep.shape.axes = 3;
    deep.shape.windows.axis[0] = {3, 1, 1, 1, 8, 8};
    EXPECT_GT(Plans(deep), 0u) << static_cast<int>(pass);
  }
}

TEST_F(DnnPlanTest, WhatDoesNotFitTogetherHasNoPlan) {
  DnnProblem problem = Layer(ConvPass::kForward, DType::kFloat32);
  problem.shape.windows.axis[2].out = 99;
  EXPECT_EQ(Plans(problem), 0u);
}

TEST(DnnProblemTest, ProblemsThatDifferHaveKeysThatDiffer) {
  const DnnProblem problem = Layer(ConvPass::kForward, DType::kFloat32);
  EXPECT_EQ(problem.key(), problem.key());
  DnnProblem other = problem;
  other.shape.windows.axis[2].padding = 0;
  EXPECT_NE(other.key(), problem.key());
  other = problem;
  other.numerics.conv_tf32 = false;
  EXPECT_NE(other.key(), problem.key());
  other = problem;
  other.alignment = 4;
  EXPECT_NE(other.key(), problem.key());
  other = problem;
  other.shape.groups = 2;
  EXPECT_NE(other.key(), problem.key());
}

}  // namespace
}  // namespace holdfast
