// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>
#include <string>

#include "ops/infer_testing.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

std::string Conv(const std::string& input, const std::string& weight,
                 std::initializer_list<TestAttr> attrs = {}) {
  return Infer("conv2d", {input, weight, "-"}, attrs);
}

TEST(InferConv2dTest, Shapes) {
  EXPECT_EQ(Conv("f32[2,3,8,10]", "f32[5,3,3,3]"), "f32[2,5,6,8]");
  EXPECT_EQ(Conv("f32[3,8,10]", "f32[5,3,3,3]"), "f32[5,6,8]");
  EXPECT_EQ(Conv("f64[2,3,8,8]", "f64[5,3,3,3]", {{"padding", 1}}),
            "f64[2,5,8,8]");
  EXPECT_EQ(Conv("f32[2,3,8,8]", "f32[5,3,3,3]",
                 {{"stride", Dims{2, 3}}, {"padding", Dims{1, 0}}}),
            "f32[2,5,4,2]");
  EXPECT_EQ(Conv("f32[2,3,8,8]", "f32[5,3,3,3]", {{"dilation", 2}}),
            "f32[2,5,4,4]");
  EXPECT_EQ(Conv("f32[2,4,8,8]", "f32[6,2,3,3]", {{"groups", 2}}),
            "f32[2,6,6,6]");
  EXPECT_EQ(Conv("f32[0,3,8,8]", "f32[5,3,3,3]"), "f32[0,5,6,6]");
  EXPECT_EQ(Infer("conv2d", {"f32[2,3,8,8]", "f32[5,3,3,3]", "f32[5]"}),
            "f32[2,5,6,6]");
}

TEST(InferConv2dTest, BadOperands) {
  EXPECT_THAT(Conv("f32[3,8]", "f32[5,3,3,3]"),
              HasSubstr("Expected 3D (unbatched) or 4D (batched) input to "
                        "conv2d, but got input of size: [3, 8]"));
  EXPECT_THAT(Conv("f32[2,3,8,8]", "f32[5,3,3]"),
              HasSubstr("weight must have 4 dimensions"));
  EXPECT_THAT(Conv("f32[2,4,8,8]", "f32[5,3,3,3]"),
              HasSubstr("Given groups=1, weight of size [5, 3, 3, 3], expected "
                        "input[2, 4, 8, 8] to have 3*1 channels, but got 4 "
                        "channels instead"));
  EXPECT_THAT(Conv("f32[2,4,8,8]", "f32[5,2,3,3]", {{"groups", 2}}),
              HasSubstr("expected weight to be divisible by 2 at dimension 0"));
  EXPECT_THAT(Conv("f32[2,3,2,2]", "f32[5,3,3,3]"),
              HasSubstr("Calculated padded input size per channel: (2 x 2). "
                        "Kernel size: (3 x 3). Kernel size can't be greater "
                        "than actual input size"));
  EXPECT_THAT(Conv("f32[2,3,8,8]", "f64[5,3,3,3]"),
              HasSubstr("Input type (float32) and weight type (float64) should "
                        "be the same"));
  EXPECT_THAT(Conv("i64[2,3,8,8]", "i64[5,3,3,3]"),
              HasSubstr("\"conv2d\" not implemented for 'Long'"));
  EXPECT_THAT(Conv("f32[2,3,0,8]", "f32[5,3,3,3]"), HasSubstr("empty"));
  EXPECT_THAT(Conv("f32[2,0,8,8]", "f32[5,0,3,3]"), HasSubstr("empty"));
  EXPECT_THAT(Conv("f32[2,3,8,8]", "f32[5,3,0,3]"), HasSubstr("empty"));
  EXPECT_THAT(
      Infer("conv2d", {"f32[2,3,8,8]", "f32[5,3,3,3]", "f32[4]"}),
      HasSubstr("expected bias to be 1-dimensional with 5 elements, but got "
                "bias of size [4] instead"));
  EXPECT_THAT(Infer("conv2d", {"f32[2,3,8,8]", "f32[5,3,3,3]", "f64[5]"}),
              HasSubstr("Input type (float32) and bias type (float64)"));
}

TEST(InferConv2dTest, HostileNumbers) {
  for (absl::string_view name : {"stride", "padding", "dilation"}) {
    for (int64_t value : {int64_t{-1}, kMin, kMax, kMax / 2}) {
      EXPECT_THAT(Conv("f32[2,3,8,8]", "f32[5,3,3,3]", {{name, value}}),
                  StartsWith("INVALID_ARGUMENT: [conv2d]"))
          << name << value;
    }
  }
  EXPECT_THAT(Conv("f32[2,3,8,8]", "f32[5,3,3,3]", {{"stride", 0}}),
              HasSubstr("non-positive stride is not supported"));
  EXPECT_THAT(Conv("f32[2,3,8,8]", "f32[5,3,3,3]", {{"padding", -1}}),
              HasSubstr("negative padding is not supported"));
  for (int64_t groups : {int64_t{0}, int64_t{-1}, kMin, kMax}) {
    EXPECT_THAT(Conv("f32[2,3,8,8]", "f32[5,3,3,3]", {{"groups", groups}}),
                StartsWith("INVALID_ARGUMENT: [conv2d]"));
  }
  // A result larger than any tensor from inputs that are small.
  EXPECT_THAT(Conv("f32[2,3,8,8]", "f32[5,3,3,3]", {{"padding", 2147483647}}),
              HasSubstr("at most"));
}

std::string BackwardInput(const std::string& grad, const std::string& weight,
                          Dims size) {
  return Infer("conv2d_backward_input", {grad, weight},
               {{"input_size", size},
                {"stride", 2},
                {"padding", 1},
                {"dilation", 1},
                {"groups", 1}});
}

TEST(InferConv2dBackwardTest, Input) {
  EXPECT_EQ(BackwardInput("f32[2,5,4,4]", "f32[5,3,3,3]", {2, 3, 8, 8}),
            "f32[2,3,8,8]");
  // stride 2: sizes 7 and 8 have the same output size.
  EXPECT_EQ(BackwardInput("f32[2,5,4,4]", "f32[5,3,3,3]", {2, 3, 7, 8}),
            "f32[2,3,7,8]");
  EXPECT_EQ(BackwardInput("f32[5,4,4]", "f32[5,3,3,3]", {3, 8, 8}),
            "f32[3,8,8]");
  EXPECT_THAT(BackwardInput("f32[2,5,4,4]", "f32[5,3,3,3]", {2, 3, 9, 8}),
              HasSubstr("grad must have the convolution's shape [2, 5, 5, 4]"));
  EXPECT_THAT(BackwardInput("f32[2,5,4,4]", "f64[5,3,3,3]", {2, 3, 8, 8}),
              HasSubstr("same dtype"));
  EXPECT_THAT(BackwardInput("i64[2,5,4,4]", "i64[5,3,3,3]", {2, 3, 8, 8}),
              HasSubstr("not implemented for 'Long'"));
  for (const Dims& size : {Dims{}, Dims{2, 3}, Dims{2, 3, kMax, 8},
                           Dims{2, 3, -8, 8}, Dims{kMin, 3, 8, 8}}) {
    EXPECT_THAT(BackwardInput("f32[2,5,4,4]", "f32[5,3,3,3]", size),
                StartsWith("INVALID_ARGUMENT: [conv2d_backward_input]"));
  }
}

TEST(InferConv2dBackwardTest, Weight) {
  auto infer = [](const std::string& grad, const std::string& input,
                  Dims size) {
    return Infer("conv2d_backward_weight", {grad, input},
                 {{"weight_size", size},
                  {"stride", 2},
                  {"padding", 1},
                  {"dilation", 1},
                  {"groups", 1}});
  };
  EXPECT_EQ(infer("f32[2,5,4,4]", "f32[2,3,8,8]", {5, 3, 3, 3}),
            "f32[5,3,3,3]");
  EXPECT_THAT(infer("f32[2,5,4,4]", "f32[2,3,8,8]", {6, 3, 3, 3}),
              HasSubstr("grad must have the convolution's shape"));
  EXPECT_THAT(infer("f32[2,5,4,4]", "f32[2,3,8,8]", {5, 3, kMax, 3}),
              StartsWith("INVALID_ARGUMENT"));
  EXPECT_THAT(infer("f32[2,5,4,4]", "f32[2,3,8,8]", {5, 3, 3}),
              StartsWith("INVALID_ARGUMENT"));
}

}  // namespace
}  // namespace holdfast
