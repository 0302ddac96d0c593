// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "ops/infer_testing.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

std::string View(const std::string& input, Dims size) {
  return Infer("view", {input}, {{"size", size}});
}

TEST(InferViewTest, Shapes) {
  EXPECT_EQ(View("f32[2,3]", {6}), "f32[6]&0");
  EXPECT_EQ(View("f32[2,3]@4", {3, 2}), "f32[3,2]@4&0");
  EXPECT_EQ(View("f32[2,3]", {-1}), "f32[6]&0");
  EXPECT_EQ(View("f32[2,3]", {3, -1, 1}), "f32[3,2,1]&0");
  EXPECT_EQ(View("f32[]", {1, 1}), "f32[1,1]&0");
  EXPECT_EQ(View("f32[1]", {}), "f32[]&0");
  EXPECT_EQ(View("f32[]", {}), "f32[]&0");
  EXPECT_EQ(View("f32[0,3]", {3, 0}), "f32[3,0]&0");
  EXPECT_EQ(View("f32[0,3]", {-1, 3}), "f32[0,3]&0");
}

TEST(InferViewTest, Strides) {
  EXPECT_EQ(View("f32[4,3]{6,1}", {2, 2, 3}), "f32[2,2,3]{12,6,1}&0");
  EXPECT_THAT(View("f32[3,2]{1,3}", {6}),
              HasSubstr("view size is not compatible with input tensor's size "
                        "and stride"));
}

TEST(InferViewTest, BadShapes) {
  EXPECT_THAT(View("f32[2,3]", {-1, -1}),
              HasSubstr("only one dimension can be inferred"));
  EXPECT_THAT(View("f32[2,3]", {-2, 3}),
              HasSubstr("invalid shape dimension -2"));
  EXPECT_THAT(View("f32[2,3]", {2, 5}),
              HasSubstr("shape '[2, 5]' is invalid for input of size 6"));
  EXPECT_THAT(View("f32[2,3]", {4, -1}), HasSubstr("is invalid for input"));
  EXPECT_THAT(View("f32[2,3]", {0, -1}), HasSubstr("is invalid for input"));
  EXPECT_THAT(View("f32[0,3]", {0, -1}),
              HasSubstr("cannot reshape tensor of 0 elements into shape "
                        "[0, -1] because the unspecified dimension size -1"));
}

TEST(InferViewTest, HostileShapes) {
  for (const Dims& size :
       {Dims{kMax}, Dims{kMin}, Dims{kMax, kMax}, Dims{kMax, 2, -1},
        Dims{int64_t{1} << 32, int64_t{1} << 32}, Dims(64, 1)}) {
    EXPECT_THAT(View("f32[2,3]", size), StartsWith("INVALID_ARGUMENT: [view]"))
        << ShapeString(size);
  }
  // 2^32 * 2^32 wraps to 0, the number of elements here.
  EXPECT_THAT(View("f32[0]", {int64_t{1} << 32, int64_t{1} << 32}),
              StartsWith("INVALID_ARGUMENT: [view]"));
  EXPECT_THAT(View("f32[0]", {0, kMax, kMax}),
              StartsWith("INVALID_ARGUMENT: [view]"));
}

TEST(InferDetachTest, SameTensor) {
  EXPECT_EQ(Infer("detach", {"f32[3,2]{1,3}@2"}), "f32[3,2]{1,3}@2&0");
}

TEST(InferPermuteTest, Orders) {
  EXPECT_EQ(Infer("permute", {"f32[2,3,4]"}, {{"dims", Dims{2, 0, 1}}}),
            "f32[4,2,3]{1,12,4}&0");
  EXPECT_EQ(Infer("permute", {"f32[2,3]"}, {{"dims", Dims{-1, 0}}}),
            "f32[3,2]{1,3}&0");
  EXPECT_EQ(Infer("permute", {"f32[]"}, {{"dims", Dims{}}}), "f32[]&0");
  EXPECT_THAT(Infer("permute", {"f32[2,3]"}, {{"dims", Dims{0, 0}}}),
              HasSubstr("duplicate dims are not allowed"));
  EXPECT_THAT(Infer("permute", {"f32[2,3]"}, {{"dims", Dims{0}}}),
              HasSubstr("input.dim() = 2 is not equal to len(dims) = 1"));
  EXPECT_THAT(Infer("permute", {"f32[2,3]"}, {{"dims", Dims{0, kMin}}}),
              StartsWith("OUT_OF_RANGE"));
}

TEST(InferTransposeTest, Dimensions) {
  EXPECT_EQ(Infer("transpose", {"f32[2,3]"}, {{"dim0", 0}, {"dim1", -1}}),
            "f32[3,2]{1,3}&0");
  EXPECT_EQ(Infer("transpose", {"f32[2,3]"}, {{"dim0", 1}, {"dim1", 1}}),
            "f32[2,3]&0");
  EXPECT_EQ(Infer("transpose", {"f32[]"}, {{"dim0", 0}, {"dim1", -1}}),
            "f32[]&0");
  EXPECT_THAT(Infer("transpose", {"f32[2]"}, {{"dim0", 0}, {"dim1", 1}}),
              StartsWith("OUT_OF_RANGE"));
}

std::string Expand(const std::string& input, Dims size) {
  return Infer("expand", {input}, {{"size", size}});
}

TEST(InferExpandTest, Shapes) {
  EXPECT_EQ(Expand("f32[3,1]", {3, 4}), "f32[3,4]{1,0}&0");
  EXPECT_EQ(Expand("f32[3,1]", {2, -1, 4}), "f32[2,3,4]{0,1,0}&0");
  EXPECT_EQ(Expand("f32[]", {2, 2}), "f32[2,2]{0,0}&0");
  EXPECT_EQ(Expand("f32[3]@5", {3}), "f32[3]@5&0");
  EXPECT_EQ(Expand("f32[1]", {0}), "f32[0]&0");
  EXPECT_EQ(Expand("f32[0]", {2, 0}), "f32[2,0]&0");
}

TEST(InferExpandTest, BadShapes) {
  EXPECT_THAT(Expand("f32[2,3]", {2, 4}),
              HasSubstr("The expanded size of the tensor (4) must match the "
                        "existing size (3) at non-singleton dimension 1.  "
                        "Target sizes: [2, 4].  Tensor sizes: [2, 3]"));
  EXPECT_THAT(Expand("f32[2,3]", {3}),
              HasSubstr("the number of sizes provided (1) must be greater or "
                        "equal to the number of dimensions in the tensor (2)"));
  EXPECT_THAT(Expand("f32[3]", {-1, 3}),
              HasSubstr("The expanded size of the tensor (-1) isn't allowed in "
                        "a leading, non-existing dimension 0"));
  EXPECT_THAT(Expand("f32[1]", {-2}), HasSubstr("[expand]"));
  EXPECT_THAT(Expand("f32[1]", {kMin}), HasSubstr("[expand]"));
  EXPECT_THAT(Expand("f32[1]", {kMax}), HasSubstr("at most"));
  EXPECT_THAT(Expand("f32[3]", {0}), HasSubstr("[expand]"));
}

std::string Slice(const std::string& input, AttrValue start, AttrValue end,
                  int64_t step = 1, int64_t dim = 0) {
  return Infer("slice", {input},
               {{"dim", dim}, {"start", start}, {"end", end}, {"step", step}});
}
AttrValue I(int64_t v) { return v; }
const AttrValue kNoneValue;

TEST(InferSliceTest, LikePython) {
  EXPECT_EQ(Infer("slice", {"f32[5]"}), "f32[5]&0");
  EXPECT_EQ(Slice("f32[5]", I(1), I(4)), "f32[3]@1&0");
  EXPECT_EQ(Slice("f32[5]", I(-2), kNoneValue), "f32[2]@3&0");
  EXPECT_EQ(Slice("f32[5]", kNoneValue, I(-1)), "f32[4]&0");
  EXPECT_EQ(Slice("f32[5]", I(1), kNoneValue, 2), "f32[2]{2}@1&0");
  EXPECT_EQ(Slice("f32[5]", I(0), I(100), 3), "f32[2]{3}&0");
  EXPECT_EQ(Slice("f32[5]", I(-100), I(2)), "f32[2]&0");
  EXPECT_EQ(Slice("f32[5]", I(4), I(2)), "f32[0]&0");
  EXPECT_EQ(Slice("f32[5]", I(100), kNoneValue), "f32[0]&0");
  EXPECT_EQ(Slice("f32[2,5]", I(1), I(3), 1, -1), "f32[2,2]{5,1}@1&0");
  EXPECT_EQ(Slice("f32[3,2]{1,3}@4", I(1), kNoneValue), "f32[2,2]{1,3}@5&0");
}

// Against Python's definition by counting.
TEST(InferSliceTest, CountsEveryCombination) {
  for (int64_t size = 0; size <= 5; ++size) {
    for (int64_t start = -7; start <= 7; ++start) {
      for (int64_t end = -7; end <= 7; ++end) {
        for (int64_t step = 1; step <= 4; ++step) {
          const int64_t from =
              std::clamp<int64_t>(start < 0 ? start + size : start, 0, size);
          const int64_t to =
              std::clamp<int64_t>(end < 0 ? end + size : end, 0, size);
          int64_t count = 0;
          for (int64_t i = from; i < to; i += step) ++count;
          TestCall call("slice", {absl::StrCat("f32[", size, "]")},
                        {{"start", start}, {"end", end}, {"step", step}});
          OutputSpecs out;
          ASSERT_TRUE(InferOp(call.attrs, call.pointers, false, &out).ok());
          const TensorSpec& view = out[0].spec;
          ASSERT_EQ(view.shape[0], count)
              << size << " " << start << ":" << end << ":" << step;
          if (count > 0) {
            ASSERT_EQ(view.offset, from);
          }
          if (count > 1) {
            ASSERT_EQ(view.strides[0], step);
          }
        }
      }
    }
  }
}

TEST(InferSliceTest, HostileBounds) {
  EXPECT_EQ(Slice("f32[5]", I(kMin), I(kMax), kMax), "f32[1]&0");
  EXPECT_EQ(Slice("f32[5]", I(kMax), I(kMin), kMax), "f32[0]&0");
  EXPECT_EQ(Slice("f32[5]", I(kMin), I(kMin)), "f32[0]&0");
  // A size-1 dimension may have any stride: nothing may multiply it.
  EXPECT_EQ(Slice("f32[1]{70368744177664}", I(0), I(1), kMax), "f32[1]&0");
  EXPECT_EQ(Slice("f32[1]{70368744177664}", I(1), I(1), kMax), "f32[0]&0");
  EXPECT_THAT(Slice("f32[5]", I(0), I(5), 0),
              HasSubstr("slice step must be positive"));
  EXPECT_THAT(Slice("f32[5]", I(0), I(5), kMin),
              HasSubstr("slice step must be positive"));
  EXPECT_THAT(Slice("f32[]", I(0), I(5)),
              HasSubstr("slice() cannot be applied to a 0-dim tensor"));
  EXPECT_THAT(Slice("f32[5]", I(0), I(5), 1, 1), StartsWith("OUT_OF_RANGE"));
}

std::string Select(const std::string& input, int64_t dim, int64_t index) {
  return Infer("select", {input}, {{"dim", dim}, {"index", index}});
}

TEST(InferSelectTest, Indices) {
  EXPECT_EQ(Select("f32[2,3]", 0, 1), "f32[3]@3&0");
  EXPECT_EQ(Select("f32[2,3]", 1, -1), "f32[2]{3}@2&0");
  EXPECT_EQ(Select("f32[2]", 0, 0), "f32[]&0");
  EXPECT_EQ(Select("f32[3]", 0, 5),
            "OUT_OF_RANGE: [select] index 5 is out of bounds for dimension 0 "
            "with size 3. Got input=f32[3], dim=0, index=5.");
  EXPECT_THAT(Select("f32[3]", 0, -4), StartsWith("OUT_OF_RANGE"));
  EXPECT_THAT(Select("f32[3]", 0, kMin), StartsWith("OUT_OF_RANGE"));
  EXPECT_THAT(Select("f32[3]", 0, kMax), StartsWith("OUT_OF_RANGE"));
  EXPECT_THAT(Select("f32[0]", 0, 0), StartsWith("OUT_OF_RANGE"));
  EXPECT_THAT(Select("f32[]", 0, 0),
              HasSubstr("select() cannot be applied to a 0-dim tensor"));
}

TEST(InferUnsqueezeTest, Positions) {
  EXPECT_EQ(Infer("unsqueeze", {"f32[2,3]"}, {{"dim", 0}}), "f32[1,2,3]&0");
  EXPECT_EQ(Infer("unsqueeze", {"f32[2,3]"}, {{"dim", 2}}), "f32[2,3,1]&0");
  EXPECT_EQ(Infer("unsqueeze", {"f32[2,3]"}, {{"dim", -1}}), "f32[2,3,1]&0");
  EXPECT_EQ(Infer("unsqueeze", {"f32[]"}, {{"dim", 0}}), "f32[1]&0");
  EXPECT_THAT(Infer("unsqueeze", {"f32[2,3]"}, {{"dim", 3}}),
              HasSubstr("expected to be in range of [-3, 2], but got 3"));
}

TEST(InferSqueezeTest, Dimensions) {
  EXPECT_EQ(Infer("squeeze", {"f32[1,2,1]"}), "f32[2]&0");
  EXPECT_EQ(Infer("squeeze", {"f32[1,2,1]"}, {{"dim", 0}}), "f32[2,1]&0");
  EXPECT_EQ(Infer("squeeze", {"f32[1,2,1]"}, {{"dim", 1}}), "f32[1,2,1]&0");
  EXPECT_EQ(Infer("squeeze", {"f32[1,2,1]"}, {{"dim", Dims{0, -1}}}),
            "f32[2]&0");
  EXPECT_EQ(Infer("squeeze", {"f32[1,2]"}, {{"dim", Dims{}}}), "f32[1,2]&0");
  EXPECT_EQ(Infer("squeeze", {"f32[]"}), "f32[]&0");
  EXPECT_EQ(Infer("squeeze", {"f32[]"}, {{"dim", 0}}), "f32[]&0");
  EXPECT_THAT(Infer("squeeze", {"f32[1]"}, {{"dim", Dims{0, 0}}}),
              HasSubstr("appears multiple times"));
  EXPECT_THAT(Infer("squeeze", {"f32[1]"}, {{"dim", 1}}),
              StartsWith("OUT_OF_RANGE"));
}

std::string AsStrided(Dims size, Dims stride, AttrValue offset = {}) {
  return Infer(
      "as_strided", {"f32[4]@2"},
      {{"size", size}, {"stride", stride}, {"storage_offset", offset}});
}

TEST(InferAsStridedTest, AnyLayout) {
  EXPECT_EQ(AsStrided({2, 2}, {1, 1}), "f32[2,2]{1,1}@2&0");
  EXPECT_EQ(AsStrided({2}, {3}, I(0)), "f32[2]{3}&0");
  EXPECT_EQ(AsStrided({}, {}, I(1)), "f32[]@1&0");
}

TEST(InferAsStridedTest, HostileLayouts) {
  EXPECT_THAT(AsStrided({2, 2}, {1}),
              HasSubstr("mismatch in length of strides and shape"));
  EXPECT_THAT(AsStrided({2}, {-1}),
              HasSubstr("Negative strides are not supported"));
  EXPECT_THAT(AsStrided({2}, {1}, I(-1)),
              HasSubstr("invalid storage offset -1"));
  EXPECT_THAT(AsStrided({-1}, {1}), HasSubstr("negative dimension"));
  for (int64_t big : {kMax, kMax / 2, kMaxTensorBytes}) {
    EXPECT_THAT(AsStrided({2}, {big}), StartsWith("INVALID_ARGUMENT")) << big;
    EXPECT_THAT(AsStrided({big}, {1}), StartsWith("INVALID_ARGUMENT")) << big;
    EXPECT_THAT(AsStrided({2}, {1}, I(big)), StartsWith("INVALID_ARGUMENT"));
  }
  EXPECT_THAT(AsStrided({1}, {kMax}), StartsWith("INVALID_ARGUMENT"));
  EXPECT_THAT(AsStrided({0, 2}, {1, kMax}), StartsWith("INVALID_ARGUMENT"));
}

}  // namespace
}  // namespace holdfast
