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

TEST(InferSoftmaxTest, FloatsOnly) {
  EXPECT_EQ(Infer("softmax", {"f32[2,3]"}, {{"dim", -1}}), "f32[2,3]");
  EXPECT_EQ(Infer("log_softmax", {"f64[]"}, {{"dim", 0}}), "f64[]");
  EXPECT_EQ(
      Infer("softmax", {"i64[3]"}, {{"dim", 0}, {"dtype", DType::kFloat32}}),
      "f32[3]");
  EXPECT_THAT(Infer("softmax", {"i64[3]"}, {{"dim", 0}}),
              HasSubstr("\"softmax\" not implemented for 'Long'"));
  EXPECT_THAT(
      Infer("softmax", {"f32[3]"}, {{"dim", 0}, {"dtype", DType::kInt64}}),
      HasSubstr("not implemented for 'Long'"));
  EXPECT_THAT(Infer("softmax", {"f32[3]"}, {{"dim", 1}}),
              StartsWith("OUT_OF_RANGE"));
}

TEST(InferSoftmaxBackwardTest, Shapes) {
  EXPECT_EQ(Infer("softmax_backward", {"f32[2,3]", "f32[2,3]"}, {{"dim", 1}}),
            "f32[2,3]");
  EXPECT_THAT(
      Infer("log_softmax_backward", {"f32[2,3]", "f32[3,2]"}, {{"dim", 1}}),
      HasSubstr("grad and output must have one shape"));
  EXPECT_THAT(Infer("softmax_backward", {"f32[2]", "f64[2]"}, {{"dim", 0}}),
              HasSubstr("same dtype"));
  EXPECT_THAT(Infer("softmax_backward", {"f32[2]", "f32[2]"}, {{"dim", 1}}),
              StartsWith("OUT_OF_RANGE"));
}

TEST(InferNllLossTest, Shapes) {
  EXPECT_EQ(Infer("nll_loss", {"f32[4,10]", "i64[4]", "-"}), "f32[] f32[]");
  EXPECT_EQ(Infer("nll_loss", {"f64[4,10]", "i64[4]", "f64[10]"},
                  {{"reduction", "none"}}),
            "f64[4] f64[]");
  EXPECT_EQ(
      Infer("nll_loss", {"f32[10]", "i64[]", "-"}, {{"reduction", "sum"}}),
      "f32[] f32[]");
  EXPECT_EQ(
      Infer("nll_loss", {"f32[10]", "i64[]", "-"}, {{"reduction", "none"}}),
      "f32[] f32[]");
  EXPECT_EQ(Infer("nll_loss", {"f32[0,10]", "i64[0]", "-"}), "f32[] f32[]");
}

TEST(InferNllLossTest, BadOperands) {
  EXPECT_THAT(Infer("nll_loss", {"f32[4,10]", "i64[5]", "-"}),
              HasSubstr("size mismatch (got input: [4, 10], target: [5])"));
  EXPECT_THAT(Infer("nll_loss", {"f32[4,10]", "i64[]", "-"}),
              HasSubstr("size mismatch"));
  EXPECT_THAT(Infer("nll_loss", {"f32[10]", "i64[10]", "-"}),
              HasSubstr("size mismatch"));
  EXPECT_THAT(Infer("nll_loss", {"f32[4,10,2]", "i64[4,2]", "-"}),
              HasSubstr("input tensor should be 1D or 2D"));
  EXPECT_THAT(Infer("nll_loss", {"f32[]", "i64[]", "-"}),
              HasSubstr("input tensor should be 1D or 2D"));
  EXPECT_THAT(Infer("nll_loss", {"f32[4,10]", "i64[4,10]", "-"}),
              HasSubstr("multi-target not supported"));
  EXPECT_THAT(Infer("nll_loss", {"f32[4,10]", "i32[4]", "-"}),
              HasSubstr("expected scalar type Long but found Int"));
  EXPECT_THAT(Infer("nll_loss", {"f32[4,10]", "i64[4]", "f32[9]"}),
              HasSubstr("weight tensor should be defined either for all 10 "
                        "classes or no classes but got weight tensor of shape: "
                        "[9]"));
  EXPECT_THAT(Infer("nll_loss", {"f32[4,10]", "i64[4]", "f64[10]"}),
              HasSubstr("expected scalar type Float but found Double"));
  EXPECT_THAT(
      Infer("nll_loss", {"f32[4,10]", "i64[4]", "-"}, {{"reduction", "bar"}}),
      HasSubstr("'bar' is not a valid value for reduction"));
  EXPECT_THAT(Infer("nll_loss", {"i64[4,10]", "i64[4]", "-"}),
              HasSubstr("not implemented for 'Long'"));
}

std::string Backward(const std::vector<std::string>& inputs, Dims size,
                     const char* reduction) {
  return Infer(
      "nll_loss_backward", inputs,
      {{"input_size", size}, {"reduction", reduction}, {"ignore_index", -100}});
}

TEST(InferNllLossBackwardTest, Shapes) {
  EXPECT_EQ(Backward({"f32[]", "i64[4]", "-", "f32[]"}, {4, 10}, "mean"),
            "f32[4,10]");
  EXPECT_EQ(Backward({"f32[4]", "i64[4]", "f32[10]", "f32[]"}, {4, 10}, "none"),
            "f32[4,10]");
  EXPECT_EQ(Backward({"f32[]", "i64[]", "-", "f32[]"}, {10}, "none"),
            "f32[10]");
  EXPECT_THAT(Backward({"f32[4]", "i64[4]", "-", "f32[]"}, {4, 10}, "mean"),
              HasSubstr("grad must have the loss's shape []"));
  EXPECT_THAT(Backward({"f32[]", "i64[4]", "-", "f32[]"}, {4, 10}, "none"),
              HasSubstr("grad must have the loss's shape [4]"));
  EXPECT_THAT(Backward({"f32[]", "i64[4]", "-", "f32[1]"}, {4, 10}, "mean"),
              HasSubstr("total_weight must be a scalar"));
  EXPECT_THAT(Backward({"f32[]", "i64[4]", "-", "f64[]"}, {4, 10}, "mean"),
              HasSubstr("same dtype"));
  EXPECT_THAT(Backward({"f32[]", "i64[4]", "-", "f32[]"}, {5, 10}, "mean"),
              HasSubstr("size mismatch"));
  EXPECT_THAT(Backward({"f32[]", "i64[4]", "-", "f32[]"}, {4, kMax}, "mean"),
              HasSubstr("at most"));
}

}  // namespace
}  // namespace holdfast
