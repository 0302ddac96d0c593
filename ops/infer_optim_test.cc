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

TEST(InferSgdTest, GroupsOfThree) {
  EXPECT_EQ(
      Infer("sgd", {"f32[2]", "f64[]", "f32[2]", "f64[]", "f32[2]", "f64[]"},
            {{"lr", 0.1}, {"momentum", 0.9}}),
      "");
  EXPECT_EQ(Infer("sgd", {}, {{"lr", 0.1}}), "");
}

TEST(InferSgdTest, GroupsMustMatch) {
  EXPECT_EQ(
      Infer("sgd", {"f32[2]", "f32[3]", "f32[2]", "f32[4]", "f32[2]", "f32[3]"},
            {{"lr", 0.1}}),
      "INVALID_ARGUMENT: [sgd] entry 1 of grads must be as parameter 1, "
      "f32[3], not f32[4]. Got params=[f32[2], f32[3]], grads=[f32[2], "
      "f32[4]], momentum_buffers=[f32[2], f32[3]], lr=0.1.");
  EXPECT_THAT(Infer("sgd", {"f32[2]", "f64[2]", "f32[2]"}, {{"lr", 0.1}}),
              HasSubstr("entry 0 of grads"));
  EXPECT_THAT(Infer("sgd", {"f32[2]", "f32[2]", "f32[3]"}, {{"lr", 0.1}}),
              HasSubstr("entry 0 of momentum_buffers"));
  EXPECT_THAT(Infer("sgd", {"i64[2]", "i64[2]", "i64[2]"}, {{"lr", 0.1}}),
              HasSubstr("not implemented for 'Long'"));
}

TEST(InferSgdTest, OnlyWrittenListsMustBeWritable) {
  // sum().backward() leaves an expanded gradient.
  EXPECT_EQ(Infer("sgd", {"f32[2]", "f32[2]{0}", "f32[2]{0}"}, {{"lr", 0.1}}),
            "");
  EXPECT_THAT(Infer("sgd", {"f32[2]", "f32[2]{0}", "f32[2]{0}"},
                    {{"lr", 0.1}, {"momentum", 0.9}}),
              HasSubstr("more than one element of the written-to tensor"));
  EXPECT_THAT(Infer("sgd", {"f32[2]{0}", "f32[2]", "f32[2]"}, {{"lr", 0.1}}),
              HasSubstr("more than one element of the written-to tensor"));
}

TEST(InferAdamTest, GroupsOfFour) {
  EXPECT_EQ(Infer("adam", {"f32[2]", "f32[2]{0}", "f32[2]", "f32[2]"},
                  {{"lr", 0.1}, {"step", 1}}),
            "");
  EXPECT_THAT(Infer("adam", {"f32[2]", "f32[2]", "f32[2]", "f32[3]"},
                    {{"lr", 0.1}, {"step", 1}}),
              HasSubstr("entry 0 of exp_avg_sqs"));
  EXPECT_THAT(Infer("adam", {"f32[2]", "f32[2]", "f32[2]", "f32[2]{0}"},
                    {{"lr", 0.1}, {"step", 1}}),
              HasSubstr("more than one element"));
  for (int64_t step : {int64_t{0}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_THAT(Infer("adam", {"f32[2]", "f32[2]", "f32[2]", "f32[2]"},
                      {{"lr", 0.1}, {"step", step}}),
                HasSubstr("step must count from 1"));
  }
}

}  // namespace
}  // namespace holdfast
