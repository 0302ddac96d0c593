// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/infer_rule.h"
#include "ops/infer_testing.h"

namespace holdfast {
namespace {

// An operand of add: a tensor, or "True", "1", "1.5" for a number.
std::string ResultOf(const std::string& a, const std::string& b) {
  Attrs attrs(FindOp("add"));
  std::vector<TensorSpec> specs(2);
  std::vector<const TensorSpec*> inputs(2, nullptr);
  const std::string* text[] = {&a, &b};
  for (int i = 0; i < 2; ++i) {
    if (*text[i] == "True") {
      attrs.Set(i, true);
    } else if (*text[i] == "1") {
      attrs.Set(i, int64_t{1});
    } else if (*text[i] == "1.5") {
      attrs.Set(i, 1.5);
    } else {
      specs[i] = ParseSpec(*text[i]);
      inputs[i] = &specs[i];
    }
  }
  return std::string(DTypeShortName(ResultType(attrs, inputs)));
}

// torch.result_type of a tensor of rank >= 1 (rows) with a tensor of rank >= 1,
// one of rank 0, and numbers (columns).
struct Row {
  const char* dtype;
  const char* tensor;  // bool u8 i32 i64 f32 f64
  const char* scalar;  // the same types, rank 0
  const char* number;  // True 1 1.5
};

constexpr Row kRows[] = {
    {"bool", "bool u8 i32 i64 f32 f64", "bool u8 i32 i64 f32 f64",
     "bool i64 f32"},
    {"u8", "u8 u8 i32 i64 f32 f64", "u8 u8 u8 u8 f32 f64", "u8 u8 f32"},
    {"i32", "i32 i32 i32 i64 f32 f64", "i32 i32 i32 i32 f32 f64",
     "i32 i32 f32"},
    {"i64", "i64 i64 i64 i64 f32 f64", "i64 i64 i64 i64 f32 f64",
     "i64 i64 f32"},
    {"f32", "f32 f32 f32 f32 f32 f64", "f32 f32 f32 f32 f32 f32",
     "f32 f32 f32"},
    {"f64", "f64 f64 f64 f64 f64 f64", "f64 f64 f64 f64 f64 f64",
     "f64 f64 f64"},
};

TEST(ResultTypeTest, AFloatKeepsItsPrecisionWhenItBecomesComplex) {
  EXPECT_EQ(ResultOf("f32[2]", "c128[]"), "c64");
  EXPECT_EQ(ResultOf("f16[2]", "c128[]"), "c64");
  EXPECT_EQ(ResultOf("f64[2]", "c64[]"), "c128");
  EXPECT_EQ(ResultOf("i64[2]", "c128[]"), "c128");
  EXPECT_EQ(ResultOf("f32[2]", "c128[2]"), "c128");
}

TEST(ResultTypeTest, EveryPairBothWays) {
  const std::vector<std::string> types =
      absl::StrSplit("bool u8 i32 i64 f32 f64", ' ');
  const std::vector<std::string> numbers = absl::StrSplit("True 1 1.5", ' ');
  for (const Row& row : kRows) {
    const std::string a = absl::StrCat(row.dtype, "[2]");
    const std::vector<std::string> tensor = absl::StrSplit(row.tensor, ' ');
    const std::vector<std::string> scalar = absl::StrSplit(row.scalar, ' ');
    const std::vector<std::string> number = absl::StrSplit(row.number, ' ');
    for (size_t i = 0; i < types.size(); ++i) {
      for (const auto& [b, expected] :
           {std::pair(types[i] + "[2]", tensor[i]),
            std::pair(types[i] + "[]", scalar[i])}) {
        EXPECT_EQ(ResultOf(a, b), expected) << a << " with " << b;
        EXPECT_EQ(ResultOf(b, a), expected) << b << " with " << a;
      }
      // Two tensors of rank 0 promote as two of rank 1.
      const std::string s = absl::StrCat(row.dtype, "[]");
      EXPECT_EQ(ResultOf(s, types[i] + "[]"), tensor[i]) << s << types[i];
    }
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(ResultOf(a, numbers[i]), number[i]) << a << numbers[i];
      EXPECT_EQ(ResultOf(numbers[i], a), number[i]) << numbers[i] << a;
      // A tensor of rank 0 outranks a number too.
      const std::string s = absl::StrCat(row.dtype, "[]");
      EXPECT_EQ(ResultOf(s, numbers[i]), number[i]) << s << numbers[i];
      DType dtype;
      dtype = DTypeOfShortName(row.dtype);
      const AttrValue values[] = {AttrValue(true), AttrValue(int64_t{1}),
                                  AttrValue(1.5)};
      EXPECT_EQ(DTypeShortName(PromoteWithNumber(dtype, values[i])), number[i]);
    }
  }
}

TEST(ResultTypeTest, SizeDoesNotMatterOnlyRank) {
  EXPECT_EQ(ResultOf("f32[1]", "f64[]"), "f32");
  EXPECT_EQ(ResultOf("f32[0]", "f64[]"), "f32");
  EXPECT_EQ(ResultOf("f32[]", "f64[1]"), "f64");
}

TEST(ResultTypeTest, ReadsOperandsOnly) {
  TestCall where("where", {"bool[2]", "i32[2]", "-"}, {{"other", 1}});
  EXPECT_EQ(ResultType(where.attrs, where.pointers), DType::kInt32);
  TestCall numbers("where", {"bool[2]", "-", "-"},
                   {{"input", 1}, {"other", 1.5}});
  EXPECT_EQ(ResultType(numbers.attrs, numbers.pointers), DType::kFloat32);
}

TEST(ResultTypeTest, ScatterComputesInItsInputsType) {
  TestCall call("scatter", {"i32[2]", "i64[2]", "-"},
                {{"dim", 0}, {"src", 1.5}});
  EXPECT_EQ(ResultType(call.attrs, call.pointers), DType::kInt32);
}

TEST(ResultTypeTest, Lists) {
  TestCall call("cat", {"u8[2]", "i32[2]", "f64[]"});
  EXPECT_EQ(ResultType(call.attrs, call.pointers), DType::kFloat64);
}

}  // namespace
}  // namespace holdfast
