// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN plans for an H100 whether or not there is one: cuDNN takes a GPU's
// properties as JSON in its place. What the kernels compute needs a GPU.
#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "kernels/cuda/dnn_attention.h"
#include "kernels/cuda/dnn_convolution.h"

namespace holdfast::cuda {
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
    return FindDnnPlans(dnn_, {nullptr, &*properties_}, problem, 3,
                        int64_t{1} << 30)
        .size();
  }

  DnnLibrary dnn_;
  std::optional<DnnDescriptor> properties_;
};

// Kernels of attention are compiled by cuDNN, after everything else has been
// checked, and loaded by the GPU's driver, in whose place the toolkit's stub
// refuses.
class DnnAttentionTest : public DnnPlanTest {
 protected:
  void SetUp() override {
    const char* home = getenv("CUDA_HOME");
    const std::string stub =
        std::string(home == nullptr ? "/usr/local/cuda" : home) +
        "/lib64/stubs/libcuda.so";
    if (dlopen(stub.c_str(), RTLD_NOW) == nullptr) {
      GTEST_SKIP() << dlerror();
    }
    DnnPlanTest::SetUp();
  }
  // How many ways of the problem come as far as that, or further.
  size_t Compilable(const DnnProblem& problem) {
    DnnGraph graph(dnn_, {nullptr, &*properties_});
    problem.Describe(&graph);
    std::vector<cudnnStatus_t> refused;
    const size_t plans =
        graph.Plans(problem, 3, int64_t{1} << 30, &refused).size();
    return plans + std::count(refused.begin(), refused.end(),
                              CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
  }
};

// A layer of ResNet-50.
ConvolutionProblem Layer(ConvPass pass, DType dtype) {
  ConvolutionProblem problem;
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
    ConvolutionProblem problem = Layer(pass, DType::kFloat32);
    problem.numerics.conv_tf32 = false;
    problem.numerics.deterministic = true;
    EXPECT_GT(Plans(problem), 0u) << static_cast<int>(pass);
  }
}

TEST_F(DnnPlanTest, GroupsDilationAndThreeAxes) {
  for (ConvPass pass : kPasses) {
    ConvolutionProblem depthwise = Layer(pass, DType::kFloat32);
    depthwise.shape.groups = 64;
    depthwise.shape.out_channels = 64;
    EXPECT_GT(Plans(depthwise), 0u) << static_cast<int>(pass);
    ConvolutionProblem wide = Layer(pass, DType::kFloat32);
    for (int i = 1; i < 3; ++i) {
      wide.shape.windows.axis[i] = {3, 1, 2, 2, 56, 56};
    }
    EXPECT_GT(Plans(wide), 0u) << static_cast<int>(pass);
    ConvolutionProblem deep = Layer(pass, DType::kFloat32);
    deep.shape.axes = 3;
    deep.shape.windows.axis[0] = {3, 1, 1, 1, 8, 8};
    EXPECT_GT(Plans(deep), 0u) << static_cast<int>(pass);
  }
}

TEST_F(DnnPlanTest, WhatDoesNotFitTogetherHasNoPlan) {
  ConvolutionProblem problem = Layer(ConvPass::kForward, DType::kFloat32);
  problem.shape.windows.axis[2].out = 99;
  EXPECT_EQ(Plans(problem), 0u);
}

// Heads as nn.MultiheadAttention makes them, or without gaps.
AttentionProblem Heads(bool backward, DType dtype, bool causal, int64_t l,
                       int64_t s, int64_t width, bool apart) {
  AttentionProblem p;
  p.backward = backward;
  p.dtype = dtype;
  p.causal = causal;
  p.n = 4;
  p.h = 8;
  p.l = l;
  p.s = s;
  p.e = p.v = width;
  const auto steps = [&](int64_t rows) {
    return apart ? AttentionProblem::Steps{3 * p.h * width, width,
                                           3 * p.n * p.h * width}
                 : AttentionProblem::Steps{p.h * rows * width, rows * width,
                                           width};
  };
  p.query = p.output_grad = steps(l);
  p.key_steps = p.value = steps(s);
  return p;
}

TEST_F(DnnAttentionTest, IsCompiled) {
  for (bool backward : {false, true}) {
    for (bool causal : {false, true}) {
      for (int64_t width : {64, 128}) {
        const int64_t length = width == 64 ? 1024 : 128;
        EXPECT_GT(Compilable(Heads(backward, DType::kBFloat16, causal, length,
                                   length, width, causal)),
                  0u)
            << "backward " << backward << " causal " << causal << " width "
            << width;
      }
    }
    EXPECT_GT(
        Compilable(Heads(backward, DType::kFloat16, true, 100, 77, 40, true)),
        0u)
        << "backward " << backward;
  }
}

TEST_F(DnnAttentionTest, DoesNotFitTogether) {
  for (bool backward : {false, true}) {
    // Rows that are not a multiple of 16 bytes.
    EXPECT_EQ(Compilable(Heads(backward, DType::kBFloat16, false, 128, 128, 63,
                               false)),
              0u)
        << backward;
  }
}

TEST(DnnProblemTest, AttentionsThatDifferHaveKeysThatDiffer) {
  const AttentionProblem problem =
      Heads(false, DType::kBFloat16, false, 128, 128, 64, false);
  AttentionProblem other = problem;
  EXPECT_EQ(problem.key(), other.key());
  other.causal = true;
  EXPECT_NE(problem.key(), other.key());
  other = problem;
  other.value.head += 8;
  EXPECT_NE(problem.key(), other.key());
  EXPECT_NE(problem.key(), Layer(ConvPass::kForward, DType::kBFloat16).key());
}

TEST(DnnProblemTest, VersionsThatComputeAttentionWronglyAreAvoided) {
  const AttentionProblem full =
      Heads(true, DType::kBFloat16, false, 128, 128, 64, false);
  const AttentionProblem rest =
      Heads(true, DType::kBFloat16, false, 128, 100, 64, false);
  EXPECT_TRUE(full.IsSound(90300));
  EXPECT_FALSE(full.IsSound(91000));
  EXPECT_FALSE(rest.IsSound(91500));
  EXPECT_TRUE(rest.IsSound(91900));
}

TEST(DnnProblemTest, ProblemsThatDifferHaveKeysThatDiffer) {
  const ConvolutionProblem problem = Layer(ConvPass::kForward, DType::kFloat32);
  EXPECT_EQ(problem.key(), problem.key());
  ConvolutionProblem other = problem;
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
}  // namespace holdfast::cuda
