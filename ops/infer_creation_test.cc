// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "ops/infer_testing.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(InferFullTest, TypeFollowsTheValue) {
  EXPECT_EQ(Infer("full", {}, {{"size", Dims{2, 3}}, {"fill_value", 1.5}}),
            "f32[2,3]");
  EXPECT_EQ(Infer("full", {}, {{"size", Dims{}}, {"fill_value", 1}}), "i64[]");
  EXPECT_EQ(Infer("full", {}, {{"size", 4}, {"fill_value", true}}), "bool[4]");
  EXPECT_EQ(Infer("full", {},
                  {{"size", 4}, {"fill_value", 1}, {"dtype", DType::kUInt8}}),
            "u8[4]");
}

TEST(InferSizedTest, HostileSizes) {
  EXPECT_EQ(Infer("empty", {}, {{"size", Dims{2, 0}}}), "f32[2,0]");
  EXPECT_EQ(Infer("rand", {}, {{"size", 3}, {"dtype", DType::kFloat64}}),
            "f64[3]");
  EXPECT_EQ(Infer("empty", {}, {{"size", Dims{2, -1}}}),
            "INVALID_ARGUMENT: [empty] Trying to create tensor with negative "
            "dimension -1: [2,-1]. Got size=[2,-1].");
  for (const Dims& size : {Dims{kMax}, Dims{kMax, kMax}, Dims{kMin},
                           Dims{0, kMax, kMax}, Dims{1 << 30, 1 << 30}}) {
    EXPECT_THAT(Infer("empty", {}, {{"size", size}}), HasSubstr("[empty]"));
  }
}

TEST(InferSizedTest, RandomNumbersAreFloats) {
  EXPECT_EQ(Infer("empty", {}, {{"size", 3}, {"dtype", DType::kInt64}}),
            "i64[3]");
  EXPECT_THAT(Infer("rand", {}, {{"size", 3}, {"dtype", DType::kInt64}}),
              HasSubstr("not implemented for 'Long'"));
  EXPECT_THAT(Infer("randn", {}, {{"size", 3}, {"dtype", DType::kBool}}),
              HasSubstr("not implemented for 'Bool'"));
}

std::string Arange(AttrValue start, AttrValue end, AttrValue step,
                   AttrValue dtype = {}) {
  return Infer(
      "arange", {},
      {{"start", start}, {"end", end}, {"step", step}, {"dtype", dtype}});
}
AttrValue I(int64_t v) { return v; }

TEST(InferArangeTest, CountsAndTypes) {
  EXPECT_EQ(Infer("arange", {}, {{"start", 0}, {"end", 5}}), "i64[5]");
  EXPECT_EQ(Arange(I(0), I(5), I(2)), "i64[3]");
  EXPECT_EQ(Arange(I(0), I(6), I(2)), "i64[3]");
  EXPECT_EQ(Arange(I(5), I(0), I(-2)), "i64[3]");
  EXPECT_EQ(Arange(I(3), I(3), I(1)), "i64[0]");
  EXPECT_EQ(Arange(0.0, 1.0, 0.25), "f32[4]");
  EXPECT_EQ(Arange(0.0, 1.1, 0.25), "f32[5]");
  EXPECT_EQ(Arange(I(0), 1.0, 0.5, DType::kFloat64), "f64[2]");
  EXPECT_EQ(Arange(I(0), I(3), I(1), DType::kFloat32), "f32[3]");
  // int64 counts in whole numbers.
  EXPECT_EQ(Arange(0.0, 2.5, 1.0, DType::kInt64), "i64[2]");
}

TEST(InferArangeTest, BadSteps) {
  EXPECT_THAT(Arange(I(0), I(5), I(0)), HasSubstr("step must be nonzero"));
  EXPECT_THAT(Arange(0.0, 5.0, std::nan("")),
              HasSubstr("step must be nonzero"));
  EXPECT_THAT(Arange(0.0, 5.0, 0.5, DType::kInt64),
              HasSubstr("step must be nonzero"));
  EXPECT_THAT(Arange(I(5), I(0), I(1)),
              HasSubstr("inconsistent with step sign"));
  EXPECT_THAT(Arange(I(0), I(5), I(-1)),
              HasSubstr("inconsistent with step sign"));
}

TEST(InferArangeTest, HostileRanges) {
  EXPECT_THAT(Arange(0.0, INFINITY, 1.0), HasSubstr("unsupported range"));
  EXPECT_THAT(Arange(std::nan(""), 1.0, 1.0), HasSubstr("unsupported range"));
  EXPECT_THAT(Arange(I(kMin), I(kMax), I(1)), HasSubstr("invalid size"));
  EXPECT_EQ(Arange(I(kMin), I(kMax), I(kMax)), "i64[3]");
  EXPECT_EQ(Arange(I(kMax), I(kMin), I(kMin)), "i64[2]");
  EXPECT_THAT(Arange(0.0, 1e300, 1e-300), HasSubstr("invalid size"));
  EXPECT_THAT(Arange(0.0, 1e15, 1.0), HasSubstr("at most"));
  EXPECT_THAT(Arange(I(0), I(1), I(1), DType::kBool),
              HasSubstr("not implemented for 'Bool'"));
}

TEST(InferEyeTest, Sizes) {
  EXPECT_EQ(Infer("eye", {}, {{"n", 3}}), "f32[3,3]");
  EXPECT_EQ(Infer("eye", {}, {{"n", 3}, {"m", 0}}), "f32[3,0]");
  EXPECT_THAT(Infer("eye", {}, {{"n", -1}}),
              HasSubstr("n must be greater or equal to 0, got -1"));
  EXPECT_THAT(Infer("eye", {}, {{"n", 1}, {"m", kMin}}),
              HasSubstr("m must be greater or equal to 0"));
  EXPECT_THAT(Infer("eye", {}, {{"n", kMax}}), HasSubstr("at most"));
}

std::string RandInt(int64_t low, int64_t high, AttrValue dtype = {}) {
  return Infer("randint", {},
               {{"low", low}, {"high", high}, {"size", 2}, {"dtype", dtype}});
}

TEST(InferRandIntTest, BoundsMustFit) {
  EXPECT_EQ(RandInt(0, 10), "i64[2]");
  EXPECT_EQ(RandInt(kMin, kMax), "i64[2]");
  EXPECT_EQ(RandInt(0, 256, DType::kUInt8), "u8[2]");
  EXPECT_EQ(RandInt(0, 2, DType::kBool), "bool[2]");
  EXPECT_THAT(RandInt(0, 257, DType::kUInt8),
              HasSubstr("to - 1 is out of bounds for uint8"));
  EXPECT_THAT(RandInt(-1, 5, DType::kUInt8),
              HasSubstr("from is out of bounds for uint8"));
  EXPECT_THAT(RandInt(0, kMax, DType::kInt32), HasSubstr("out of bounds"));
  EXPECT_THAT(RandInt(5, 5),
              HasSubstr("random_ expects 'from' to be less than 'to', but got "
                        "from=5 >= to=5"));
  EXPECT_THAT(RandInt(kMax, kMin), HasSubstr("[randint]"));
}

TEST(InferRandPermTest, Sizes) {
  EXPECT_EQ(Infer("randperm", {}, {{"n", 5}}), "i64[5]");
  EXPECT_EQ(Infer("randperm", {}, {{"n", 0}, {"dtype", DType::kInt32}}),
            "i32[0]");
  EXPECT_EQ(Infer("randperm", {}, {{"n", 256}, {"dtype", DType::kUInt8}}),
            "u8[256]");
  EXPECT_THAT(Infer("randperm", {}, {{"n", 257}, {"dtype", DType::kUInt8}}),
              HasSubstr("n is too large for uint8"));
  EXPECT_THAT(Infer("randperm", {}, {{"n", -1}}),
              HasSubstr("n must be non-negative, got -1"));
  EXPECT_THAT(Infer("randperm", {}, {{"n", kMax}}), HasSubstr("[randperm]"));
}

}  // namespace
}  // namespace holdfast
