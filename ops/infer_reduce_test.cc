// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "ops/infer_testing.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(InferSumTest, Dimensions) {
  EXPECT_EQ(Infer("sum", {"f32[2,3,4]"}), "f32[]");
  EXPECT_EQ(Infer("sum", {"f32[2,3,4]"}, {{"keepdim", true}}), "f32[1,1,1]");
  EXPECT_EQ(Infer("sum", {"f32[2,3,4]"}, {{"dim", 1}}), "f32[2,4]");
  EXPECT_EQ(Infer("sum", {"f32[2,3,4]"}, {{"dim", Dims{-1, 0}}}), "f32[3]");
  EXPECT_EQ(
      Infer("sum", {"f32[2,3,4]"}, {{"dim", Dims{-1, 0}}, {"keepdim", true}}),
      "f32[1,3,1]");
  EXPECT_EQ(Infer("sum", {"f32[2,3,4]"}, {{"dim", Dims{}}}), "f32[]");
  EXPECT_EQ(Infer("sum", {"f32[]"}, {{"dim", -1}}), "f32[]");
  EXPECT_EQ(Infer("sum", {"f32[0,3]"}, {{"dim", 0}}), "f32[3]");
  EXPECT_EQ(Infer("sum", {"f32[3,2]{1,3}"}, {{"dim", 0}}), "f32[2]");
}

TEST(InferSumTest, Types) {
  EXPECT_EQ(Infer("sum", {"bool[2]"}), "i64[]");
  EXPECT_EQ(Infer("sum", {"u8[2]"}), "i64[]");
  EXPECT_EQ(Infer("sum", {"f64[2]"}), "f64[]");
  EXPECT_EQ(Infer("sum", {"i64[2]"}, {{"dtype", DType::kFloat32}}), "f32[]");
}

TEST(InferSumTest, BadDimensions) {
  EXPECT_EQ(Infer("sum", {"f32[2,3]"}, {{"dim", Dims{0, -2}}}),
            "INVALID_ARGUMENT: [sum] dim 0 appears multiple times in the list "
            "of dims. Got input=f32[2,3], dim=[0,-2].");
  EXPECT_EQ(Infer("sum", {"f32[2,3]"}, {{"dim", 2}}),
            "OUT_OF_RANGE: [sum] Dimension out of range (expected to be in "
            "range of [-2, 1], but got 2). Got input=f32[2,3], dim=[2].");
  EXPECT_THAT(Infer("sum", {"f32[2]"}, {{"dim", kMin}}),
              StartsWith("OUT_OF_RANGE"));
  EXPECT_THAT(Infer("sum", {"f32[2]"}, {{"dim", kMax}}),
              StartsWith("OUT_OF_RANGE"));
}

TEST(InferMeanTest, FloatsOnly) {
  EXPECT_EQ(Infer("mean", {"f32[2,3]"}, {{"dim", 0}}), "f32[3]");
  EXPECT_EQ(Infer("mean", {"i64[2]"}, {{"dtype", DType::kFloat64}}), "f64[]");
  EXPECT_THAT(Infer("mean", {"i64[2]"}),
              HasSubstr("mean(): could not infer output dtype. Input dtype "
                        "must be either a floating point or complex dtype. "
                        "Got: Long"));
  EXPECT_THAT(Infer("mean", {"f32[2]"}, {{"dtype", DType::kInt32}}),
              HasSubstr("could not infer output dtype"));
}

TEST(InferNansumTest, FloatsOnly) {
  EXPECT_EQ(Infer("nansum", {"f64[2,3]"}, {{"dim", 1}, {"keepdim", true}}),
            "f64[2,1]");
  EXPECT_THAT(Infer("nansum", {"i64[2]"}),
              HasSubstr("nansum of floating point only. Got Long"));
}

TEST(InferCountNonzeroTest, CountsAreInt64) {
  EXPECT_EQ(Infer("count_nonzero", {"bool[2,3]"}), "i64[]");
  EXPECT_EQ(Infer("count_nonzero", {"f32[2,3,4]"}, {{"dim", Dims{0, -1}}}),
            "i64[3]");
  EXPECT_THAT(Infer("count_nonzero", {"f32[2,3]"}, {{"dim", 2}}),
              HasSubstr("Dimension out of range"));
}

TEST(InferAmaxTest, EmptyDimensionsHaveNoLargestElement) {
  EXPECT_EQ(Infer("amax", {"i32[2,3]"}, {{"dim", 1}}), "i32[2]");
  EXPECT_EQ(Infer("amin", {"bool[2,3]"}), "bool[]");
  EXPECT_EQ(Infer("amax", {"f32[0,3]"}, {{"dim", 1}}), "f32[0]");
  EXPECT_THAT(Infer("amax", {"f32[0,3]"}, {{"dim", 0}}),
              HasSubstr("amax(): Expected reduction dim 0 to have non-zero "
                        "size"));
  EXPECT_THAT(Infer("amin", {"f32[0,3]"}),
              HasSubstr("amin(): Expected reduction dim to be specified for "
                        "input.numel() == 0"));
  EXPECT_THAT(Infer("amax", {"f32[2,3]"}, {{"dim", Dims{1, 1}}}),
              HasSubstr("appears multiple times"));
}

TEST(InferArgmaxTest, Dimensions) {
  EXPECT_EQ(Infer("argmax", {"f32[2,3]"}), "i64[]");
  EXPECT_EQ(Infer("argmax", {"f32[2,3]"}, {{"keepdim", true}}), "i64[1,1]");
  EXPECT_EQ(Infer("argmax", {"f32[2,3]"}, {{"dim", -1}}), "i64[2]");
  EXPECT_EQ(Infer("argmin", {"u8[2,3]"}, {{"dim", 0}, {"keepdim", true}}),
            "i64[1,3]");
  EXPECT_EQ(Infer("argmax", {"f32[]"}, {{"dim", 0}}), "i64[]");
  EXPECT_THAT(Infer("argmax", {"f32[0]"}), StartsWith("OUT_OF_RANGE"));
  EXPECT_THAT(Infer("argmax", {"bool[2]"}),
              HasSubstr("not implemented for 'Bool'"));
  EXPECT_THAT(Infer("argmax", {"f32[2,0]"}, {{"dim", 1}}),
              StartsWith("OUT_OF_RANGE"));
  EXPECT_EQ(Infer("argmax", {"f32[2,0]"}, {{"dim", 0}}), "i64[0]");
  EXPECT_THAT(Infer("argmax", {"f32[2]"}, {{"dim", kMin}}),
              StartsWith("OUT_OF_RANGE"));
}

TEST(InferAllTest, ResultIsBool) {
  EXPECT_EQ(Infer("all", {"f32[2,3]"}), "bool[]");
  EXPECT_EQ(Infer("any", {"i64[2,3]"}, {{"dim", 0}}), "bool[3]");
  EXPECT_EQ(Infer("all", {"bool[0]"}), "bool[]");
}

TEST(InferCumsumTest, KeepsShape) {
  EXPECT_EQ(Infer("cumsum", {"i32[2,3]"}, {{"dim", 1}}), "i64[2,3]");
  EXPECT_EQ(Infer("cumsum", {"f32[]"}, {{"dim", 0}}), "f32[]");
  EXPECT_EQ(
      Infer("cumsum", {"f32[2]"}, {{"dim", 0}, {"dtype", DType::kFloat64}}),
      "f64[2]");
  EXPECT_THAT(Infer("cumsum", {"f32[2]"}, {{"dim", 1}}),
              StartsWith("OUT_OF_RANGE"));
}

}  // namespace
}  // namespace holdfast
