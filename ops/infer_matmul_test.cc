// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ops/infer_testing.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

TEST(InferMatmulTest, Ranks) {
  EXPECT_EQ(Infer("matmul", {"f32[3]", "f32[3]"}), "f32[]");
  EXPECT_EQ(Infer("matmul", {"f32[2,3]", "f32[3,4]"}), "f32[2,4]");
  EXPECT_EQ(Infer("matmul", {"f32[2,3]{1,2}", "f32[3,4]"}), "f32[2,4]");
  EXPECT_EQ(Infer("matmul", {"f32[2,3]", "f32[3]"}), "f32[2]");
  EXPECT_EQ(Infer("matmul", {"f32[3]", "f32[3,4]"}), "f32[4]");
  EXPECT_EQ(Infer("matmul", {"f32[5,2,3]", "f32[3,4]"}), "f32[5,2,4]");
  EXPECT_EQ(Infer("matmul", {"f32[5,2,3]", "f32[3]"}), "f32[5,2]");
  EXPECT_EQ(Infer("matmul", {"f32[3]", "f32[5,3,4]"}), "f32[5,4]");
  EXPECT_EQ(Infer("matmul", {"f32[5,1,2,3]", "f32[6,3,4]"}), "f32[5,6,2,4]");
  EXPECT_EQ(Infer("matmul", {"i64[2,3]", "i64[3,4]"}), "i64[2,4]");
}

TEST(InferMatmulTest, Empty) {
  EXPECT_EQ(Infer("matmul", {"f32[2,0]", "f32[0,4]"}), "f32[2,4]");
  EXPECT_EQ(Infer("matmul", {"f32[0,3]", "f32[3,4]"}), "f32[0,4]");
  EXPECT_EQ(Infer("matmul", {"f32[0]", "f32[0]"}), "f32[]");
}

TEST(InferMatmulTest, BadOperands) {
  EXPECT_EQ(Infer("matmul", {"f32[2,3]", "f32[4,5]"}),
            "INVALID_ARGUMENT: [matmul] mat1 and mat2 shapes cannot be "
            "multiplied (2x3 and 4x5). Got input=f32[2,3], other=f32[4,5].");
  EXPECT_THAT(Infer("matmul", {"f32[3]", "f32[4]"}),
              HasSubstr("inconsistent tensor size, expected tensor [3] and src "
                        "[4] to have the same number of elements"));
  EXPECT_THAT(Infer("matmul", {"f32[]", "f32[4]"}),
              HasSubstr("both arguments to matmul need to be at least 1D, but "
                        "they are 0D and 1D"));
  EXPECT_THAT(Infer("matmul", {"f32[2,3]", "f64[3,4]"}),
              HasSubstr("expected m1 and m2 to have the same dtype, but got: "
                        "float32 != float64"));
  EXPECT_THAT(Infer("matmul", {"f32[5,2,3]", "f32[4,3,2]"}),
              HasSubstr("The size of tensor a (5) must match the size of "
                        "tensor b (4) at non-singleton dimension 0"));
  EXPECT_THAT(Infer("matmul", {"bool[2,3]", "bool[3,4]"}),
              HasSubstr("not implemented for 'Bool'"));
  EXPECT_THAT(Infer("matmul", {"f32[1099511627776,1]", "f32[1,1099511627776]"}),
              HasSubstr("at most"));
}

TEST(InferLinearTest, Shapes) {
  EXPECT_EQ(Infer("linear", {"f32[2,3]", "f32[4,3]", "f32[4]"}), "f32[2,4]");
  EXPECT_EQ(Infer("linear", {"f32[3]", "f32[4,3]", "-"}), "f32[4]");
  EXPECT_EQ(Infer("linear", {"f32[5,2,3]", "f32[4,3]", "f32[4]"}),
            "f32[5,2,4]");
  EXPECT_EQ(Infer("linear", {"f32[0,3]", "f32[4,3]", "-"}), "f32[0,4]");
}

TEST(InferLinearTest, BadOperands) {
  EXPECT_THAT(Infer("linear", {"f32[5,2,3]", "f32[4,6]", "-"}),
              HasSubstr("mat1 and mat2 shapes cannot be multiplied (10x3 and "
                        "6x4)"));
  EXPECT_THAT(Infer("linear", {"f32[2,3]", "f32[4,3]", "f32[5]"}),
              HasSubstr("bias must have shape [4]"));
  EXPECT_THAT(Infer("linear", {"f32[2,3]", "f32[4,3]", "f64[4]"}),
              HasSubstr("expected input and bias to have the same dtype"));
  EXPECT_THAT(Infer("linear", {"f32[2,3]", "f64[4,3]", "-"}),
              HasSubstr("same dtype"));
  EXPECT_THAT(Infer("linear", {"f32[]", "f32[4,3]", "-"}),
              HasSubstr("at least one dimension"));
  EXPECT_THAT(Infer("linear", {"f32[3]", "f32[3]", "-"}),
              HasSubstr("weight must be a matrix"));
}

}  // namespace
}  // namespace holdfast
