// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ops/infer_rule.h"
#include "ops/infer_testing.h"

namespace holdfast {
namespace {

std::string Ordered(absl::string_view op,
                    const std::vector<std::string>& inputs,
                    std::initializer_list<TestAttr> attrs = {}) {
  const TestCall call(op, inputs, attrs);
  OutputSpecs out;
  const absl::Status status = InferOp(call.attrs, call.pointers, false, &out);
  if (!status.ok()) return status.ToString();
  const bool kept = KeepOrder(call.attrs, call.pointers, &out);
  EXPECT_EQ(kept, !out[0].spec.contiguous());
  return OutputText(out[0]);
}

TEST(KeepOrderTest, AResultLiesAsItsOperands) {
  EXPECT_EQ(Ordered("neg", {"f32[3,2]{1,3}"}), "f32[3,2]{1,3}");
  EXPECT_EQ(Ordered("neg", {"f32[3,2]"}), "f32[3,2]");
  EXPECT_EQ(Ordered("eq", {"f32[3,2]{1,3}@5", "-"}, {{"other", 1}}),
            "bool[3,2]{1,3}");
  EXPECT_EQ(Ordered("to", {"f32[3,2]{1,3}"}, {{"dtype", DType::kInt64}}),
            "i64[3,2]{1,3}");
  EXPECT_EQ(Ordered("relu", {"f32[2,3,4,5]{60,1,15,3}"}),
            "f32[2,3,4,5]{60,1,15,3}");
}

TEST(KeepOrderTest, GapsAreClosed) {
  EXPECT_EQ(Ordered("neg", {"f32[3,2]{4,2}"}), "f32[3,2]");
  EXPECT_EQ(Ordered("neg", {"f32[3,2]{2,12}"}), "f32[3,2]{1,3}");
}

TEST(KeepOrderTest, TheFirstThatTellsDecides) {
  EXPECT_EQ(Ordered("add", {"f32[3,2]", "f32[3,2]{1,3}"}), "f32[3,2]");
  EXPECT_EQ(Ordered("add", {"f32[3,2]{1,3}", "f32[3,2]"}), "f32[3,2]{1,3}");
  EXPECT_EQ(Ordered("add", {"f32[2]", "f32[3,2]{1,3}"}), "f32[3,2]{1,3}");
  EXPECT_EQ(Ordered("add", {"f32[3,1]", "f32[1,2]"}), "f32[3,2]");
  // An expanded dimension tells nothing.
  EXPECT_EQ(Ordered("neg", {"f32[3,2]{0,1}"}), "f32[3,2]");
  EXPECT_EQ(Ordered("neg", {"f32[3,2]{1,0}"}), "f32[3,2]");
}

TEST(KeepOrderTest, OthersStayInRowMajorOrder) {
  EXPECT_EQ(Ordered("clone", {"f32[3,2]{1,3}"}), "f32[3,2]");
  EXPECT_EQ(Ordered("softmax", {"f32[3,2]{1,3}"}, {{"dim", 0}}), "f32[3,2]");
  EXPECT_EQ(Ordered("neg", {"f32[3,0]{1,3}"}), "f32[3,0]");
}

}  // namespace
}  // namespace holdfast
