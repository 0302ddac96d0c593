// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of resampling and of columns of windows: shapes and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "ops/infer_testing.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(InferResampleTest, Shapes) {
  EXPECT_EQ(Infer("resample2d", {"f32[2,3,4,5]"},
                  {{"output_size", Dims{7, 1}}, {"mode", "cubic"}}),
            "f32[2,3,7,1]");
  EXPECT_EQ(Infer("resample2d_backward", {"f64[0,4,5]"},
                  {{"input_size", 3}, {"mode", "area"}}),
            "f64[0,3,3]");
}

TEST(InferResampleTest, Refuses) {
  EXPECT_THAT(
      Infer("resample2d", {"f32[4,5]"}, {{"output_size", 3}, {"mode", "sinc"}}),
      HasSubstr("unknown mode"));
  EXPECT_THAT(Infer("resample2d", {"i64[4,5]"},
                    {{"output_size", 3}, {"mode", "linear"}}),
              HasSubstr("not implemented for 'Long'"));
  for (Dims size : {Dims{0, 3}, Dims{3, -1}, Dims{kMax, 3}}) {
    EXPECT_THAT(Infer("resample2d", {"f32[4,5]"},
                      {{"output_size", size}, {"mode", "linear"}}),
                HasSubstr("sizes should be greater than 0"));
  }
  EXPECT_THAT(
      Infer("resample2d", {"f32[4,5]"},
            {{"output_size", 3}, {"mode", "linear"}, {"scale_h", -1.0}}),
      HasSubstr("scale_h must be positive"));
}

TEST(InferWeightedGatherTest, Shapes) {
  EXPECT_EQ(
      Infer("weighted_gather", {"f32[2,3,9]", "i64[2,4,5]", "f32[2,4,5]"}),
      "f32[2,3,5]");
  EXPECT_EQ(Infer("weighted_gather_backward_input",
                  {"f32[2,3,5]", "i64[2,4,5]", "f32[2,4,5]"}, {{"size", 9}}),
            "f32[2,3,9]");
  EXPECT_EQ(Infer("weighted_gather_backward_weight",
                  {"f32[2,3,5]", "i64[2,4,5]", "f32[2,3,9]"}),
            "f32[2,4,5]");
  EXPECT_THAT(
      Infer("weighted_gather", {"f32[2,3,9]", "i32[2,4,5]", "f32[2,4,5]"}),
      HasSubstr("index must be int64"));
  EXPECT_THAT(
      Infer("weighted_gather", {"f32[2,3,9]", "i64[2,4,5]", "f32[2,4,6]"}),
      HasSubstr("weight must have the shape of index"));
  EXPECT_THAT(Infer("weighted_gather_backward_input",
                    {"f32[2,3,6]", "i64[2,4,5]", "f32[2,4,5]"}, {{"size", 9}}),
              HasSubstr("grad must have an element per channel"));
}

TEST(InferUnfoldTest, ShapesAndRefusals) {
  const auto im2col = [](const char* input, Dims kernel, int padding) {
    return Infer("im2col", {input},
                 {{"kernel_size", kernel},
                  {"dilation", 1},
                  {"padding", padding},
                  {"stride", 1}});
  };
  EXPECT_EQ(im2col("f32[2,3,4,5]", {2, 3}, 0), "f32[2,18,9]");
  EXPECT_EQ(im2col("u8[0,3,4,5]", {4, 5}, 0), "u8[0,60,1]");
  EXPECT_THAT(im2col("f32[2,3,4,5]", {5, 1}, 0),
              HasSubstr("its components must be at least one"));
  EXPECT_THAT(im2col("f32[3,4,5]", {1, 1}, 0), HasSubstr("4D"));
  EXPECT_THAT(im2col("f32[2,3,4,5]", {1, 0}, 0),
              HasSubstr("kernel_size should be greater than zero"));
  EXPECT_THAT(im2col("f32[2,3,4,5]", {1, 1}, -1),
              HasSubstr("padding should be non-negative"));
  // Padding so wide that the columns cannot be counted.
  EXPECT_THAT(im2col("f32[2,3,4,5]", {1, 1}, 2147483647), HasSubstr("im2col"));
}

}  // namespace
}  // namespace holdfast
