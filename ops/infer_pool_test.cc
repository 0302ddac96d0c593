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

std::string MaxPool(const std::string& input,
                    std::initializer_list<TestAttr> attrs) {
  return Infer("max_pool2d", {input}, attrs);
}

TEST(InferMaxPool2dTest, Shapes) {
  EXPECT_EQ(MaxPool("f32[2,3,8,9]", {{"kernel_size", 2}}),
            "f32[2,3,4,4] i64[2,3,4,4]");
  EXPECT_EQ(MaxPool("f64[3,8,9]", {{"kernel_size", 2}}),
            "f64[3,4,4] i64[3,4,4]");
  EXPECT_EQ(MaxPool("f32[2,3,8,9]", {{"kernel_size", 2}, {"ceil_mode", true}}),
            "f32[2,3,4,5] i64[2,3,4,5]");
  EXPECT_EQ(
      MaxPool("f32[2,3,8,9]", {{"kernel_size", Dims{2, 3}}, {"stride", 1}}),
      "f32[2,3,7,7] i64[2,3,7,7]");
  EXPECT_EQ(MaxPool("f32[2,3,8,9]",
                    {{"kernel_size", 3}, {"stride", 2}, {"padding", 1}}),
            "f32[2,3,4,5] i64[2,3,4,5]");
  EXPECT_EQ(MaxPool("f32[2,3,8,9]", {{"kernel_size", 3}, {"dilation", 2}}),
            "f32[2,3,2,2] i64[2,3,2,2]");
  EXPECT_EQ(MaxPool("f32[0,3,8,8]", {{"kernel_size", 2}}),
            "f32[0,3,4,4] i64[0,3,4,4]");
}

TEST(InferMaxPool2dTest, BadInput) {
  EXPECT_THAT(MaxPool("f32[8,8]", {{"kernel_size", 2}}),
              HasSubstr("Expected 3D or 4D (batch mode) tensor with optional 0 "
                        "dim batch size for input, but got: [8, 8]"));
  EXPECT_THAT(MaxPool("f32[2,0,8,8]", {{"kernel_size", 2}}),
              HasSubstr("Expected 3D or 4D"));
  EXPECT_THAT(MaxPool("f32[0,8,8]", {{"kernel_size", 2}}),
              HasSubstr("Expected 3D or 4D"));
  EXPECT_THAT(MaxPool("f32[1,2,2]", {{"kernel_size", 3}}),
              HasSubstr("Given input size: (1x2x2). Calculated output size: "
                        "(1x0x0). Output size is too small"));
  EXPECT_THAT(MaxPool("i64[1,8,8]", {{"kernel_size", 2}}),
              HasSubstr("\"max_pool2d\" not implemented for 'Long'"));
}

TEST(InferMaxPool2dTest, BadWindows) {
  EXPECT_THAT(MaxPool("f32[1,8,8]", {{"kernel_size", 0}}),
              HasSubstr("kernel size should be greater than zero"));
  EXPECT_THAT(MaxPool("f32[1,8,8]", {{"kernel_size", 2}, {"stride", 0}}),
              HasSubstr("stride should be greater than zero"));
  EXPECT_THAT(MaxPool("f32[1,8,8]", {{"kernel_size", 2}, {"dilation", 0}}),
              HasSubstr("dilation should be greater than zero"));
  EXPECT_THAT(MaxPool("f32[1,8,8]", {{"kernel_size", 2}, {"padding", 2}}),
              HasSubstr("pad should be at most half of kernel size, but got "
                        "pad=2 and kernel_size=2"));
  EXPECT_THAT(MaxPool("f32[1,8,8]", {{"kernel_size", 2}, {"padding", -1}}),
              HasSubstr("pad must be non-negative, but got pad: -1"));
  for (absl::string_view name :
       {"kernel_size", "stride", "padding", "dilation"}) {
    for (int64_t value : {kMin, kMax, kMax / 2}) {
      TestCall call("max_pool2d", {"f32[1,8,8]"}, {{"kernel_size", 3}});
      call.attrs.Set(name, value);
      EXPECT_THAT(call.Run(), StartsWith("INVALID_ARGUMENT: [max_pool2d]"))
          << name << value;
    }
  }
}

TEST(InferMaxPool2dBackwardTest, Shapes) {
  auto infer = [](const std::string& grad, const std::string& indices,
                  Dims size) {
    return Infer("max_pool2d_backward", {grad, indices},
                 {{"input_size", size}});
  };
  EXPECT_EQ(infer("f32[2,3,4,4]", "i64[2,3,4,4]", {2, 3, 8, 8}),
            "f32[2,3,8,8]");
  EXPECT_EQ(infer("f32[3,4,4]", "i64[3,4,4]", {3, 8, 8}), "f32[3,8,8]");
  EXPECT_THAT(infer("f32[2,3,4,4]", "i64[2,3,4,5]", {2, 3, 8, 8}),
              HasSubstr("must have one shape"));
  EXPECT_THAT(infer("f32[2,3,4,4]", "i64[2,3,4,4]", {2, 4, 8, 8}),
              HasSubstr("must have one shape"));
  EXPECT_THAT(infer("f32[2,3,4,4]", "i64[2,3,4,4]", {3, 8, 8}),
              HasSubstr("must have one shape"));
  EXPECT_THAT(infer("f32[2,3,4,4]", "i32[2,3,4,4]", {2, 3, 8, 8}),
              HasSubstr("indices must be int64"));
  EXPECT_THAT(infer("f32[2,3,4,4]", "i64[2,3,4,4]", {2, 3, kMax, 8}),
              StartsWith("INVALID_ARGUMENT"));
  EXPECT_THAT(infer("f32[2,3,4,4]", "i64[2,3,4,4]", {2, 3, 0, 8}),
              StartsWith("INVALID_ARGUMENT"));
}

TEST(InferMaxPool2dGatherTest, Shapes) {
  EXPECT_EQ(Infer("max_pool2d_gather", {"f32[2,3,8,8]", "i64[2,3,4,4]"}),
            "f32[2,3,4,4]");
  EXPECT_THAT(Infer("max_pool2d_gather", {"f32[2,3,8,8]", "i64[2,4,4,4]"}),
              HasSubstr("batch and channels"));
  EXPECT_THAT(Infer("max_pool2d_gather", {"f32[2,3,8,8]", "i64[3,4,4]"}),
              HasSubstr("batch and channels"));
  EXPECT_THAT(Infer("max_pool2d_gather", {"f32[8,8]", "i64[4,4]"}),
              HasSubstr("Expected 3D or 4D"));
  EXPECT_THAT(Infer("max_pool2d_gather", {"f32[1,8,8]", "f32[1,4,4]"}),
              HasSubstr("indices must be int64"));
}

TEST(InferAvgPool2dTest, Shapes) {
  EXPECT_EQ(Infer("avg_pool2d", {"f32[2,3,8,9]"}, {{"kernel_size", 2}}),
            "f32[2,3,4,4]");
  EXPECT_EQ(Infer("avg_pool2d", {"f32[3,8,9]"},
                  {{"kernel_size", 3},
                   {"stride", 2},
                   {"padding", 1},
                   {"ceil_mode", true}}),
            "f32[3,5,5]");
  EXPECT_THAT(
      Infer("avg_pool2d", {"f32[3,8,9]"}, {{"kernel_size", 3}, {"padding", 2}}),
      HasSubstr("pad should be at most half"));
  EXPECT_THAT(Infer("avg_pool2d", {"i64[3,8,9]"}, {{"kernel_size", 3}}),
              HasSubstr("not implemented"));
}

TEST(InferAvgPool2dBackwardTest, GradHasThePooledShape) {
  auto infer = [](const std::string& grad, Dims size) {
    return Infer("avg_pool2d_backward", {grad},
                 {{"input_size", size},
                  {"kernel_size", 2},
                  {"stride", 2},
                  {"padding", 0},
                  {"ceil_mode", false},
                  {"count_include_pad", true}});
  };
  EXPECT_EQ(infer("f32[2,3,4,4]", {2, 3, 8, 9}), "f32[2,3,8,9]");
  EXPECT_THAT(infer("f32[2,3,4,5]", {2, 3, 8, 9}),
              HasSubstr("grad must have the pooled shape [2, 3, 4, 4]"));
  EXPECT_THAT(infer("f32[2,3,4,4]", {2, 3, kMax, kMax}),
              StartsWith("INVALID_ARGUMENT"));
}

}  // namespace
}  // namespace holdfast
