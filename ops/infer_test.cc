// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What InferOp checks for every op, whatever its rule.
#include "ops/infer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/infer_testing.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

TEST(InferOpTest, ErrorsShowEveryInput) {
  EXPECT_EQ(Infer("add", {"f32[2,3]", "f32[4,5]"}),
            "INVALID_ARGUMENT: [add] The size of tensor a (3) must match the "
            "size of tensor b (5) at non-singleton dimension 1. Got "
            "input=f32[2,3], other=f32[4,5].");
  EXPECT_EQ(Infer("sub", {"bool[2]", "-"}, {{"other", true}}),
            "INVALID_ARGUMENT: [sub] Subtraction, the `-` operator, with two "
            "bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead. Got input=bool[2], other=True.");
  EXPECT_EQ(Infer("view", {"f32[6]"}, {{"size", Dims{4}}}),
            "INVALID_ARGUMENT: [view] shape '[4]' is invalid for input of size "
            "6. Got input=f32[6], size=[4].");
}

TEST(InferOpTest, NumberOfInputs) {
  EXPECT_EQ(Infer("add", {"f32[2]"}),
            "INVALID_ARGUMENT: [add] the op takes 2 tensors, not 1. Got "
            "input=f32[2].");
  EXPECT_THAT(Infer("add", {}), HasSubstr("the op takes 2 tensors, not 0"));
  EXPECT_THAT(Infer("relu", {"f32[2]", "f32[2]"}),
              HasSubstr("the op takes 1 tensors, not 2"));
  EXPECT_THAT(Infer("sgd", {"f32[2]", "f32[2]"}, {{"lr", 0.1}}),
              HasSubstr("tensor lists must have equal length"));
}

TEST(InferOpTest, AbsentInputs) {
  EXPECT_EQ(Infer("relu", {"-"}),
            "INVALID_ARGUMENT: [relu] argument 'input' must be a tensor.");
  EXPECT_THAT(Infer("add", {"f32[2]", "-"}),
              HasSubstr("argument 'other' must be a tensor or a number"));
  EXPECT_THAT(Infer("add", {"-", "-"}, {{"input", 1}, {"other", 2}}),
              HasSubstr("at least one operand must be a tensor"));
  EXPECT_EQ(Infer("linear", {"f32[2,3]", "f32[4,3]", "-"}), "f32[2,4]");
  EXPECT_THAT(Infer("cat", {"f32[2]", "-"}),
              HasSubstr("every entry of a list must be a tensor"));
}

TEST(InferOpTest, MissingAttributes) {
  EXPECT_EQ(Infer("view", {"f32[2]"}),
            "INVALID_ARGUMENT: [view] missing required argument 'size'. Got "
            "input=f32[2].");
  EXPECT_THAT(Infer("empty", {}),
              HasSubstr("missing required argument 'size'"));
  EXPECT_THAT(
      Infer("adam", {"f32[1]", "f32[1]", "f32[1]", "f32[1]"}, {{"lr", 0.1}}),
      HasSubstr("missing required argument 'step'"));
}

TEST(InferOpTest, RealOpsRefuseComplexNumbers) {
  EXPECT_EQ(Infer("relu", {"f16[2]"}), "f16[2]");
  EXPECT_EQ(Infer("relu", {"c64[2]"}),
            "INVALID_ARGUMENT: [relu] \"relu\" not implemented for "
            "'ComplexFloat'. Got input=c64[2].");
  EXPECT_THAT(Infer("lt", {"f32[2]", "c128[2]"}),
              HasSubstr("not implemented for 'ComplexDouble'"));
  EXPECT_EQ(Infer("cat", {"f32[2]", "c64[2]"}), "c64[4]");
  EXPECT_EQ(Infer("abs", {"c128[2]"}), "f64[2]");
  EXPECT_THAT(Infer("rand", {}, {{"size", 3}, {"dtype", DType::kComplex64}}),
              HasSubstr("ComplexFloat"));
}

TEST(InferOpTest, OutputsAreBounded) {
  // Each input is fine, their broadcast is not.
  EXPECT_THAT(Infer("add", {"f32[16777216,1]", "f32[1,16777216]"}),
              HasSubstr("a tensor has at most"));
  EXPECT_THAT(Infer("expand", {"f32[1]"},
                    {{"size", Dims{int64_t{1} << 40, int64_t{1} << 40}}}),
              HasSubstr("a view has at most"));
  // A view may be larger than what is computed with.
  const Dims huge = {int64_t{1} << 30, int64_t{1} << 20};
  EXPECT_THAT(Infer("expand", {"f32[1,1]"}, {{"size", huge}}),
              HasSubstr("f32[1073741824,1048576]"));
  EXPECT_THAT(Infer("sum", {"f32[1073741824,1048576]{0,0}"}),
              HasSubstr("an op computes with at most"));
  EXPECT_THAT(Infer("add", {"f32[1073741824,1048576]{0,0}", "f32[]"}),
              HasSubstr("a tensor has at most"));
  TensorSpec deep = ContiguousSpec(DType::kFloat32, Dims(kMaxRank, 1));
  Attrs attrs(FindOp("unsqueeze"));
  attrs.Set("dim", int64_t{0});
  OutputSpecs out;
  EXPECT_FALSE(InferOp(attrs, {&deep}, false, &out).ok());
  EXPECT_TRUE(out.empty());
}

TEST(InferOpTest, LongListsAreCutInMessages) {
  const std::vector<std::string> inputs(100, "f32[]");
  const std::string error = Infer("cat", inputs);
  EXPECT_THAT(error, HasSubstr("... (100 in all)"));
  EXPECT_LT(error.size(), 250u);
}

TEST(InplaceTest, ResultMustFit) {
  EXPECT_EQ(InferInplace("add", {"f32[2,3]", "f32[3]"}), "f32[2,3]&0");
  EXPECT_EQ(InferInplace("add", {"f32[3]", "f32[2,3]"}),
            "INVALID_ARGUMENT: [add_] output with shape [3] doesn't match the "
            "broadcast shape [2, 3]. Got input=f32[3], other=f32[2,3].");
  EXPECT_EQ(InferInplace("add", {"i64[3]", "f32[3]"}),
            "INVALID_ARGUMENT: [add_] result type Float can't be cast to the "
            "desired output type Long. Got input=i64[3], other=f32[3].");
  EXPECT_EQ(InferInplace("mul", {"i32[3]", "-"}, {{"other", 2.5}}),
            "INVALID_ARGUMENT: [mul_] result type Float can't be cast to the "
            "desired output type Int. Got input=i32[3], other=2.5.");
  EXPECT_THAT(InferInplace("div", {"i64[3]", "i64[3]"}),
              HasSubstr("[div_] result type Float can't be cast"));
  EXPECT_THAT(InferInplace("exp", {"i64[3]"}), HasSubstr("can't be cast"));
  EXPECT_THAT(InferInplace("add", {"bool[3]", "i64[3]"}),
              HasSubstr("result type Long can't be cast to the desired output "
                        "type Bool"));
}

TEST(InplaceTest, SameCategoryNarrows) {
  EXPECT_EQ(InferInplace("add", {"f32[3]", "f64[3]"}), "f32[3]&0");
  EXPECT_EQ(InferInplace("add", {"u8[3]", "i64[3]"}), "u8[3]&0");
  EXPECT_EQ(InferInplace("add", {"f32[3]", "i64[3]"}), "f32[3]&0");
}

TEST(InplaceTest, KeepsInputsLayout) {
  EXPECT_EQ(InferInplace("add", {"f32[2,3]{1,2}@5", "f32[2,3]"}),
            "f32[2,3]{1,2}@5&0");
}

TEST(InplaceTest, RuleErrorsNameTheForm) {
  EXPECT_THAT(InferInplace("add", {"f32[2]", "f32[3]"}), HasSubstr("[add_] "));
  EXPECT_THAT(InferInplace("neg", {"bool[2]"}), HasSubstr("[neg_] "));
}

TEST(InplaceTest, FirstInputMustBeATensor) {
  EXPECT_THAT(InferInplace("add", {"-", "f32[3]"}, {{"input", 1}}),
              HasSubstr("must be a tensor"));
}

TEST(InplaceTest, FormMustExist) {
  EXPECT_THAT(InferInplace("matmul", {"f32[2,2]", "f32[2,2]"}),
              HasSubstr("the op has no in-place form"));
  EXPECT_THAT(Infer("copy", {"f32[2]", "f32[2]"}),
              HasSubstr("the op has only an in-place form"));
}

TEST(InplaceTest, ExpandedTargetsAreRefused) {
  EXPECT_THAT(InferInplace("add", {"f32[3,2]{0,1}", "f32[3,2]"}),
              HasSubstr("more than one element of the written-to tensor"));
  EXPECT_THAT(InferInplace("copy", {"f32[3,2]{0,1}", "f32[3,2]"}),
              HasSubstr("more than one element of the written-to tensor"));
  // Reading an expanded tensor is fine, and so is a size-1 stride of 0.
  EXPECT_EQ(InferInplace("add", {"f32[3,2]", "f32[3,2]{0,1}"}), "f32[3,2]&0");
  EXPECT_EQ(InferInplace("add", {"f32[1,2]{0,1}", "f32[2]"}), "f32[1,2]&0");
  // Filling does not depend on the order.
  EXPECT_EQ(InferInplace("fill", {"f32[3,2]{0,1}"}, {{"value", 1}}),
            "f32[3,2]{0,1}&0");
}

}  // namespace
}  // namespace holdfast
