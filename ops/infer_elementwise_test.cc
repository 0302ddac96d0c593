// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "ops/infer_testing.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

TEST(InferUnaryTest, KeepsShapeAndResetsLayout) {
  EXPECT_EQ(Infer("relu", {"f32[2,3]"}), "f32[2,3]");
  EXPECT_EQ(Infer("relu", {"f32[3,2]{1,3}@7"}), "f32[3,2]");
  EXPECT_EQ(Infer("relu", {"f32[3,2]{0,0}"}), "f32[3,2]");
  EXPECT_EQ(Infer("sign", {"bool[2]"}), "bool[2]");
  EXPECT_EQ(Infer("neg", {"u8[]"}), "u8[]");
  EXPECT_EQ(Infer("floor", {"i64[0,3]"}), "i64[0,3]");
}

TEST(InferUnaryTest, NumericOpsRefuseBool) {
  EXPECT_THAT(Infer("neg", {"bool[2]"}),
              HasSubstr("Negation, the `-` operator, on a bool tensor"));
  EXPECT_THAT(Infer("relu", {"bool[2]"}),
              HasSubstr("Boolean inputs not supported for relu"));
  EXPECT_EQ(Infer("abs", {"bool[2]"}),
            "INVALID_ARGUMENT: [abs] \"abs\" not implemented for 'Bool'. Got "
            "input=bool[2].");
}

TEST(InferUnaryTest, FloatOpsPromoteIntegers) {
  EXPECT_EQ(Infer("exp", {"f64[2]"}), "f64[2]");
  EXPECT_EQ(Infer("exp", {"f32[2]"}), "f32[2]");
  EXPECT_EQ(Infer("sqrt", {"i64[2]"}), "f32[2]");
  EXPECT_EQ(Infer("tanh", {"bool[2]"}), "f32[2]");
}

TEST(InferUnaryTest, Predicates) {
  EXPECT_EQ(Infer("isnan", {"f32[2]"}), "bool[2]");
  EXPECT_EQ(Infer("logical_not", {"i64[2]"}), "bool[2]");
}

TEST(InferUnaryTest, RandomFills) {
  EXPECT_EQ(InferInplace("uniform", {"f32[2]"}), "f32[2]&0");
  EXPECT_THAT(InferInplace("uniform", {"i64[2]"}),
              HasSubstr("\"uniform\" not implemented for 'Long'"));
  EXPECT_THAT(InferInplace("uniform", {"f32[2]"}, {{"low", 2.0}}),
              HasSubstr("uniform_ expects to return a [from, to) range"));
  EXPECT_THAT(InferInplace("uniform", {"f32[2]"}, {{"low", std::nan("")}}),
              HasSubstr("[uniform_]"));
  EXPECT_EQ(InferInplace("normal", {"f64[2]"}, {{"std", 0.0}}), "f64[2]&0");
  EXPECT_THAT(InferInplace("normal", {"f64[2]"}, {{"std", -1.0}}),
              HasSubstr("normal expects std >= 0.0, but found std -1"));
  EXPECT_EQ(Infer("bernoulli", {"f32[2]"}), "f32[2]");
  EXPECT_THAT(Infer("bernoulli", {"i64[2]"}), HasSubstr("not implemented"));
}

TEST(InferBinaryTest, Broadcasts) {
  EXPECT_EQ(Infer("add", {"f32[2,3]", "f32[2,3]"}), "f32[2,3]");
  EXPECT_EQ(Infer("add", {"f32[2,3]{1,2}", "f32[2,3]{1,2}"}), "f32[2,3]");
  EXPECT_EQ(Infer("add", {"f32[2,1]", "f32[3]"}), "f32[2,3]");
  EXPECT_EQ(Infer("add", {"f32[]", "f32[4,1,2]"}), "f32[4,1,2]");
  EXPECT_EQ(Infer("add", {"f32[0,3]", "f32[1,3]"}), "f32[0,3]");
  EXPECT_EQ(Infer("add", {"-", "f32[3]"}, {{"input", 2}}), "f32[3]");
  EXPECT_THAT(Infer("add", {"f32[0,3]", "f32[2,3]"}),
              HasSubstr("The size of tensor a (0) must match"));
}

TEST(InferBinaryTest, Promotes) {
  EXPECT_EQ(Infer("mul", {"i64[3]", "-"}, {{"other", 2.5}}), "f32[3]");
  EXPECT_EQ(Infer("mul", {"f64[3]", "f32[3]"}), "f64[3]");
  EXPECT_EQ(Infer("maximum", {"u8[3]", "bool[3]"}), "u8[3]");
  EXPECT_EQ(Infer("add", {"bool[3]", "bool[3]"}), "bool[3]");
}

TEST(InferBinaryTest, Sub) {
  EXPECT_EQ(Infer("sub", {"i64[3]", "-"}, {{"other", 1}}), "i64[3]");
  EXPECT_THAT(Infer("sub", {"bool[3]", "bool[3]"}),
              HasSubstr("with two bool tensors"));
  EXPECT_THAT(Infer("sub", {"f32[3]", "bool[3]"}),
              HasSubstr("with a bool tensor"));
  EXPECT_THAT(Infer("sub", {"-", "bool[3]"}, {{"input", 1}}),
              HasSubstr("with a bool tensor"));
}

TEST(InferBinaryTest, DivisionsOfIntegers) {
  EXPECT_EQ(Infer("div", {"i64[3]", "i64[3]"}), "f32[3]");
  EXPECT_EQ(Infer("div", {"f64[3]", "-"}, {{"other", 2}}), "f64[3]");
  EXPECT_EQ(Infer("div", {"bool[3]", "bool[3]"}), "f32[3]");
  EXPECT_EQ(Infer("floor_divide", {"i64[3]", "i32[3]"}), "i64[3]");
  EXPECT_EQ(Infer("remainder", {"i64[3]", "-"}, {{"other", 2.0}}), "f32[3]");
  EXPECT_EQ(Infer("remainder", {"bool[3]", "i32[3]"}), "i32[3]");
  EXPECT_THAT(Infer("remainder", {"bool[3]", "bool[3]"}),
              HasSubstr("not implemented for 'Bool'"));
}

TEST(InferBinaryTest, Pow) {
  EXPECT_EQ(Infer("pow", {"f32[3]", "-"}, {{"other", -2}}), "f32[3]");
  EXPECT_EQ(Infer("pow", {"i64[3]", "-"}, {{"other", 2}}), "i64[3]");
  EXPECT_EQ(Infer("pow", {"i64[3]", "-"}, {{"other", -2.0}}), "f32[3]");
  EXPECT_EQ(Infer("pow", {"-", "i64[3]"}, {{"input", 2}}), "i64[3]");
  EXPECT_THAT(Infer("pow", {"i64[3]", "-"}, {{"other", -2}}),
              HasSubstr("Integers to negative integer powers are not allowed"));
  EXPECT_THAT(Infer("pow", {"bool[3]", "bool[3]"}),
              HasSubstr("not implemented for 'Bool'"));
}

TEST(InferCompareTest, ResultIsBool) {
  EXPECT_EQ(Infer("lt", {"f32[2,1]", "i64[3]"}), "bool[2,3]");
  EXPECT_EQ(Infer("eq", {"i64[3]", "-"}, {{"other", 0.5}}), "bool[3]");
  EXPECT_EQ(Infer("logical_and", {"f32[2]", "bool[2]"}), "bool[2]");
  EXPECT_THAT(Infer("ge", {"f32[2]", "f32[3]"}), HasSubstr("[ge]"));
}

TEST(InferBitwiseTest, IntegersAndBool) {
  EXPECT_EQ(Infer("bitwise_and", {"bool[3]", "bool[3]"}), "bool[3]");
  EXPECT_EQ(Infer("bitwise_or", {"u8[3]", "-"}, {{"other", 3}}), "u8[3]");
  EXPECT_EQ(Infer("bitwise_xor", {"i64[3]", "i32[1]"}), "i64[3]");
  EXPECT_THAT(Infer("bitwise_and", {"f32[3]", "i64[3]"}),
              HasSubstr("\"bitwise_and\" not implemented for 'Float'"));
}

TEST(InferWhereTest, BroadcastsAllThree) {
  EXPECT_EQ(Infer("where", {"bool[2,1]", "f32[3]", "f64[]"}), "f32[2,3]");
  EXPECT_EQ(Infer("where", {"bool[3]", "i32[2,3]", "f32[1]"}), "f32[2,3]");
  EXPECT_EQ(Infer("where", {"bool[2]", "-", "-"}, {{"input", 1}, {"other", 0}}),
            "i64[2]");
  EXPECT_EQ(Infer("where", {"bool[]", "f32[2]", "-"}, {{"other", 0}}),
            "f32[2]");
  EXPECT_THAT(Infer("where", {"u8[2]", "f32[2]", "f32[2]"}),
              HasSubstr("where expected condition to be a boolean tensor, but "
                        "got a tensor with dtype Byte"));
  EXPECT_THAT(Infer("where", {"bool[4]", "f32[3]", "f32[3]"}),
              HasSubstr("must match"));
  EXPECT_THAT(Infer("where", {"bool[3]", "f32[3]", "f32[4]"}),
              HasSubstr("must match"));
}

TEST(InferClampTest, Types) {
  EXPECT_EQ(Infer("clamp", {"f32[2]"}, {{"min", 0}}), "f32[2]");
  EXPECT_EQ(Infer("clamp", {"i64[2]"}, {{"min", 0}, {"max", 1.5}}), "f32[2]");
  EXPECT_EQ(Infer("clamp", {"bool[2]"}, {{"min", 0}}), "i64[2]");
  EXPECT_THAT(Infer("clamp", {"bool[2]"}, {{"max", true}}),
              HasSubstr("not implemented for 'Bool'"));
  EXPECT_THAT(Infer("clamp", {"f32[2]"}),
              HasSubstr("At least one of 'min' or 'max' must not be None"));
  EXPECT_THAT(InferInplace("clamp", {"i64[2]"}, {{"min", 0.5}}),
              HasSubstr("can't be cast"));
}

TEST(InferCopiesTest, ToCloneCopyFill) {
  EXPECT_EQ(Infer("to", {"f32[3,2]{1,3}"}, {{"dtype", DType::kInt64}}),
            "i64[3,2]");
  EXPECT_EQ(Infer("clone", {"f32[3,2]{1,3}@2"}), "f32[3,2]");
  EXPECT_EQ(InferInplace("copy", {"i64[2,3]", "f32[3]"}), "i64[2,3]&0");
  EXPECT_EQ(InferInplace("copy", {"f32[3,2]{1,3}", "f32[3,2]"}),
            "f32[3,2]{1,3}&0");
  EXPECT_EQ(InferInplace("copy", {"f32[3]", "f32[2,3]"}),
            "INVALID_ARGUMENT: [copy_] output with shape [3] doesn't match the "
            "broadcast shape [2, 3]. Got input=f32[3], src=f32[2,3].");
  EXPECT_THAT(InferInplace("copy", {"f32[3]", "f32[4]"}), HasSubstr("[copy_]"));
  EXPECT_EQ(InferInplace("fill", {"i64[2]"}, {{"value", 2.5}}), "i64[2]&0");
}

TEST(InferDropoutTest, ProbabilityAndType) {
  EXPECT_EQ(Infer("dropout", {"f32[2,3]"}, {{"p", 0.5}}), "f32[2,3] bool[2,3]");
  EXPECT_EQ(Infer("dropout", {"f64[2]"}, {{"p", 1}}), "f64[2] bool[2]");
  for (double p : {-0.1, 1.1, HUGE_VAL, std::nan("")}) {
    EXPECT_THAT(Infer("dropout", {"f32[2]"}, {{"p", p}}),
                HasSubstr("dropout probability has to be between 0 and 1"));
  }
  EXPECT_THAT(Infer("dropout", {"i64[2]"}, {{"p", 0.5}}),
              HasSubstr("not implemented for 'Long'"));
}

}  // namespace
}  // namespace holdfast
