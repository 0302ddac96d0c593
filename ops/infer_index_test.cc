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

TEST(InferCatTest, Joins) {
  EXPECT_EQ(Infer("cat", {"f32[2,3]", "f32[4,3]"}), "f32[6,3]");
  EXPECT_EQ(Infer("cat", {"f32[2,3]", "f32[2,1]"}, {{"dim", -1}}), "f32[2,4]");
  EXPECT_EQ(Infer("cat", {"f32[2]"}), "f32[2]");
  EXPECT_EQ(Infer("cat", {"i64[2]", "f32[1]"}), "f32[3]");
  EXPECT_EQ(Infer("cat", {"u8[2]", "bool[1]"}), "u8[3]");
  EXPECT_EQ(Infer("cat", {"f32[0,3]", "f32[2,3]"}), "f32[2,3]");
}

TEST(InferCatTest, EmptyVectorsJoinWithAnything) {
  EXPECT_EQ(Infer("cat", {"f32[0]", "f32[2,3]"}, {{"dim", 1}}), "f32[2,3]");
  EXPECT_EQ(Infer("cat", {"f32[2,3]", "f32[0]"}), "f32[2,3]");
  EXPECT_EQ(Infer("cat", {"f32[0]", "f32[0]"}), "f32[0]");
}

TEST(InferCatTest, BadLists) {
  EXPECT_THAT(Infer("cat", {}),
              HasSubstr("expected a non-empty list of Tensors"));
  EXPECT_EQ(Infer("cat", {"f32[2,3]", "f32[2,4]"}),
            "INVALID_ARGUMENT: [cat] Sizes of tensors must match except in "
            "dimension 0. Expected size 3 but got size 4 for tensor number 1 "
            "in the list. Got tensors=[f32[2,3], f32[2,4]].");
  EXPECT_THAT(Infer("cat", {"f32[2,3]", "f32[2]"}),
              HasSubstr("Tensors must have same number of dimensions: got 2 "
                        "and 1"));
  EXPECT_THAT(Infer("cat", {"f32[2]", "f32[]"}),
              HasSubstr("zero-dimensional tensor (at position 1) cannot be "
                        "concatenated"));
  EXPECT_THAT(Infer("cat", {"f32[2]"}, {{"dim", 1}}),
              StartsWith("OUT_OF_RANGE"));
}

TEST(InferGatherTest, Shapes) {
  EXPECT_EQ(Infer("gather", {"f32[3,4]", "i64[2,4]"}, {{"dim", 0}}),
            "f32[2,4]");
  EXPECT_EQ(Infer("gather", {"f32[3,4]", "i64[9,2]"}, {{"dim", 0}}),
            "f32[9,2]");
  EXPECT_EQ(Infer("gather", {"f32[3]", "i64[]"}, {{"dim", 0}}), "f32[]");
  EXPECT_EQ(Infer("gather", {"f32[3,4]", "i64[3,9]"}, {{"dim", -1}}),
            "f32[3,9]");
  EXPECT_EQ(Infer("gather", {"f32[3,4]", "i64[0,9]"}, {{"dim", 0}}),
            "f32[0,9]");
  EXPECT_THAT(Infer("gather", {"f32[3,4]", "i64[2,5]"}, {{"dim", 0}}),
              HasSubstr("expected index [2, 5] to be smaller than self [3, 4] "
                        "apart from dimension 0"));
  EXPECT_THAT(Infer("gather", {"f32[3,4]", "i64[2]"}, {{"dim", 0}}),
              HasSubstr("same number of dimensions as input tensor"));
  EXPECT_EQ(Infer("gather", {"f32[3]", "i32[2]"}, {{"dim", 0}}), "f32[2]");
  EXPECT_EQ(Infer("gather", {"f32[3]", "u8[2,0]"}, {{"dim", 0}}), "f32[2,0]");
  EXPECT_THAT(Infer("gather", {"f32[3]", "u8[2]"}, {{"dim", 0}}),
              HasSubstr("gather(): Expected dtype int32 or int64 for index"));
  EXPECT_THAT(Infer("gather", {"f32[3]", "i64[2]"}, {{"dim", kMin}}),
              StartsWith("OUT_OF_RANGE"));
}

TEST(InferScatterTest, Shapes) {
  EXPECT_EQ(
      Infer("scatter", {"f32[3,4]", "i64[9,2]", "f32[9,2]"}, {{"dim", 0}}),
      "f32[3,4]");
  EXPECT_EQ(
      Infer("scatter", {"i64[3]", "i64[2]", "-"}, {{"dim", 0}, {"src", 1.5}}),
      "i64[3]");
  EXPECT_EQ(
      Infer("scatter_add", {"f32[3]", "u8[2,0]", "f32[2,0]"}, {{"dim", 0}}),
      "f32[3]");
  EXPECT_EQ(Infer("scatter_add", {"f32[3]", "i64[2]", "f32[5]"}, {{"dim", 0}}),
            "f32[3]");
  EXPECT_EQ(InferInplace("scatter_add", {"f32[3]{2}", "i64[2]", "f32[5]"},
                         {{"dim", 0}}),
            "f32[3]{2}&0");
  EXPECT_EQ(
      Infer("scatter", {"f32[3,4]", "i64[0,9]", "f32[1,1]"}, {{"dim", 0}}),
      "f32[3,4]");
  EXPECT_THAT(
      Infer("scatter", {"f32[3,4]", "i64[3,5]", "f32[3,5]"}, {{"dim", 0}}),
      HasSubstr("Expected index [3, 5] to be smaller than self [3, 4] "
                "apart from dimension 0 and to be smaller size than "
                "src [3, 5]"));
  EXPECT_THAT(
      Infer("scatter", {"f32[3,4]", "i64[3,4]", "f32[3,3]"}, {{"dim", 0}}),
      HasSubstr("Expected index"));
  EXPECT_THAT(Infer("scatter", {"f32[3]", "i64[2]", "f64[2]"}, {{"dim", 0}}),
              HasSubstr("scatter(): Expected self.dtype to be equal to "
                        "src.dtype"));
  EXPECT_THAT(Infer("scatter", {"f32[3]", "i64[2,1]", "f32[2]"}, {{"dim", 0}}),
              HasSubstr("same number of dimensions as self tensor"));
  EXPECT_THAT(Infer("scatter", {"f32[3]", "i64[2]", "f32[2,1]"}, {{"dim", 0}}),
              HasSubstr("same number of dimensions as src tensor"));
  EXPECT_THAT(Infer("scatter", {"f32[3]", "f32[2]", "f32[2]"}, {{"dim", 0}}),
              HasSubstr("Expected dtype int32 or int64"));
}

TEST(InferIndexSelectTest, Shapes) {
  EXPECT_EQ(Infer("index_select", {"f32[3,4]", "i64[7]"}, {{"dim", 1}}),
            "f32[3,7]");
  EXPECT_EQ(Infer("index_select", {"f32[3,4]", "i32[]"}, {{"dim", 0}}),
            "f32[1,4]");
  EXPECT_EQ(Infer("index_select", {"f32[]", "i64[1]"}, {{"dim", 0}}), "f32[]");
  EXPECT_EQ(Infer("index_select", {"f32[3]", "i64[0]"}, {{"dim", 0}}),
            "f32[0]");
  EXPECT_THAT(Infer("index_select", {"f32[]", "i64[2]"}, {{"dim", 0}}),
              HasSubstr("Index to scalar can have only 1 value, got 2"));
  EXPECT_THAT(Infer("index_select", {"f32[3]", "i64[2,2]"}, {{"dim", 0}}),
              HasSubstr("Index is supposed to be a vector"));
  EXPECT_THAT(Infer("index_select", {"f32[3]", "u8[2]"}, {{"dim", 0}}),
              HasSubstr("Expected dtype int32 or int64 for index"));
  // Each is small, the result is not.
  EXPECT_THAT(Infer("index_select", {"f32[1,1073741824]", "i64[1073741824]"},
                    {{"dim", 0}}),
              HasSubstr("at most"));
}

TEST(InferIndexAddTest, Shapes) {
  EXPECT_EQ(
      Infer("index_add", {"f32[3,4]", "i64[2]", "f32[2,4]"}, {{"dim", 0}}),
      "f32[3,4]");
  EXPECT_EQ(Infer("index_add", {"f32[]", "i64[1]", "f32[]"}, {{"dim", 0}}),
            "f32[]");
  EXPECT_THAT(
      Infer("index_add", {"f32[3,4]", "i64[2]", "f32[3,4]"}, {{"dim", 0}}),
      HasSubstr("Number of indices (2) should be equal to "
                "source.size(dim): (3), for dim: 0"));
  EXPECT_THAT(
      Infer("index_add", {"f32[3,4]", "i64[2]", "f32[2,5]"}, {{"dim", 0}}),
      HasSubstr("source tensor shape must match self tensor shape"));
  EXPECT_THAT(Infer("index_add", {"f32[3]", "i64[2]", "f64[2]"}, {{"dim", 0}}),
              HasSubstr("self (Float) and source (Double) must have the same "
                        "scalar type"));
  EXPECT_THAT(
      Infer("index_add", {"f32[3,4]", "i64[2]", "f32[2]"}, {{"dim", 0}}),
      HasSubstr("as many dimensions as self"));
}

TEST(InferFlipTest, Dimensions) {
  EXPECT_EQ(Infer("flip", {"f32[2,3]"}, {{"dims", Dims{0, -1}}}), "f32[2,3]");
  EXPECT_EQ(Infer("flip", {"f32[2]"}, {{"dims", Dims{}}}), "f32[2]");
  EXPECT_THAT(Infer("flip", {"f32[2]"}, {{"dims", Dims{0, 0}}}),
              HasSubstr("appears multiple times"));
  EXPECT_THAT(Infer("flip", {"f32[2]"}, {{"dims", Dims{1}}}),
              StartsWith("OUT_OF_RANGE"));
}

TEST(InferTriTest, NeedsAMatrix) {
  EXPECT_EQ(Infer("tril", {"f32[5,2,3]"}, {{"diagonal", kMax}}), "f32[5,2,3]");
  EXPECT_EQ(Infer("triu", {"bool[2,3]"}), "bool[2,3]");
  EXPECT_THAT(Infer("tril", {"f32[3]"}),
              HasSubstr("tril: input tensor must have at least 2 dimensions"));
}

std::string Pad(const std::string& input, Dims pad) {
  return Infer("constant_pad", {input}, {{"pad", pad}});
}

TEST(InferPadTest, FromTheLastDimension) {
  EXPECT_EQ(Pad("f32[2,3]", {1, 2}), "f32[2,6]");
  EXPECT_EQ(Pad("f32[2,3]", {0, 0, 3, 0}), "f32[5,3]");
  EXPECT_EQ(Pad("f32[2,3]", {-1, -1}), "f32[2,1]");
  EXPECT_EQ(Pad("f32[2,3]", {-3, 0}), "f32[2,0]");
  EXPECT_EQ(Pad("f32[2,3]", {}), "f32[2,3]");
  EXPECT_EQ(Pad("f32[0]", {2, 2}), "f32[4]");
}

TEST(InferPadTest, BadPads) {
  EXPECT_THAT(Pad("f32[3]", {1}),
              HasSubstr("Length of pad must be even but instead it equals 1"));
  EXPECT_THAT(Pad("f32[3]", {1, 1, 1, 1}),
              HasSubstr("no more than twice the number of dimensions"));
  EXPECT_THAT(Pad("f32[3]", {-2, -2}),
              HasSubstr("The input size 3, plus negative padding -2 and -2"));
  // Cropping more than there is, even if padding makes up for it.
  EXPECT_THAT(Pad("f32[3]", {-5, 4}), HasSubstr("negative padding"));
  for (const Dims& pad : {Dims{kMax, 0}, Dims{kMax, kMax}, Dims{kMin, 0},
                          Dims{kMin, kMax}, Dims{kMin, kMin}}) {
    EXPECT_THAT(Pad("f32[3]", pad), StartsWith("INVALID_ARGUMENT"))
        << ShapeString(pad);
  }
}

std::string SliceBackward(const std::string& grad, Dims size, int64_t dim,
                          int64_t start, int64_t step) {
  return Infer(
      "slice_backward", {grad},
      {{"input_size", size}, {"dim", dim}, {"start", start}, {"step", step}});
}

TEST(InferSliceBackwardTest, GradLiesInside) {
  EXPECT_EQ(SliceBackward("f32[2,3]", {2, 7}, 1, 1, 2), "f32[2,7]");
  EXPECT_EQ(SliceBackward("f32[2,3]", {2, 7}, -1, 2, 2), "f32[2,7]");
  EXPECT_EQ(SliceBackward("f32[0]", {5}, 0, 5, 1), "f32[5]");
  EXPECT_EQ(SliceBackward("f32[1]", {5}, 0, 4, kMax), "f32[5]");
}

TEST(InferSliceBackwardTest, HostileGeometry) {
  const struct {
    const char* grad;
    Dims size;
    int64_t dim, start, step;
  } kCases[] = {
      {"f32[2,3]", {2, 7}, 1, 3, 2},    {"f32[2,3]", {2, 7}, 1, -1, 1},
      {"f32[2,3]", {2, 7}, 1, kMax, 1}, {"f32[2,3]", {2, 7}, 1, 1, kMax},
      {"f32[2,3]", {2, 7}, 1, 1, 0},    {"f32[2,3]", {2, 7}, 1, 1, -1},
      {"f32[2,3]", {3, 7}, 1, 0, 1},    {"f32[3]", {2, 7}, 1, 0, 1},
      {"f32[2,3]", {2, 7}, 2, 0, 1},    {"f32[2,3]", {2, -7}, 1, 0, 1},
      {"f32[2,3]", {kMax, 7}, 1, 0, 1}, {"f32[]", {}, 0, 0, 1},
      {"f32[0]", {5}, 0, 6, 1},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(SliceBackward(c.grad, c.size, c.dim, c.start, c.step),
                HasSubstr("[slice_backward]"))
        << c.grad << ShapeString(c.size) << c.start << " " << c.step;
  }
}

TEST(InferSelectBackwardTest, GradLiesInside) {
  auto infer = [](const std::string& grad, Dims size, int64_t dim,
                  int64_t index) {
    return Infer("select_backward", {grad},
                 {{"input_size", size}, {"dim", dim}, {"index", index}});
  };
  EXPECT_EQ(infer("f32[2]", {2, 7}, 1, 6), "f32[2,7]");
  EXPECT_EQ(infer("f32[]", {7}, 0, 0), "f32[7]");
  EXPECT_THAT(infer("f32[2]", {2, 7}, 1, 7), HasSubstr("[select_backward]"));
  EXPECT_THAT(infer("f32[2]", {2, 7}, 1, -1), HasSubstr("[select_backward]"));
  EXPECT_THAT(infer("f32[7]", {2, 7}, 1, 0), HasSubstr("[select_backward]"));
  EXPECT_THAT(infer("f32[]", {}, 0, 0), HasSubstr("[select_backward]"));
}

}  // namespace
}  // namespace holdfast
