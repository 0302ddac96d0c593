// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/dtype.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_split.h"

namespace holdfast {
namespace {

std::vector<DType> AllDTypes() {
  std::vector<DType> all;
  for (int i = 1; i < kDTypeLimit; ++i) all.push_back(static_cast<DType>(i));
  return all;
}

TEST(DTypeTest, WireValuesNeverChange) {
  EXPECT_EQ(static_cast<int>(DType::kBool), 1);
  EXPECT_EQ(static_cast<int>(DType::kUInt8), 2);
  EXPECT_EQ(static_cast<int>(DType::kInt32), 5);
  EXPECT_EQ(static_cast<int>(DType::kInt64), 6);
  EXPECT_EQ(static_cast<int>(DType::kFloat32), 9);
  EXPECT_EQ(static_cast<int>(DType::kFloat64), 10);
}

TEST(DTypeTest, NamesRoundTrip) {
  for (DType dtype : AllDTypes()) {
    DType parsed = DType::kBool;
    ASSERT_TRUE(ParseDType(DTypeName(dtype), &parsed)) << DTypeName(dtype);
    EXPECT_EQ(parsed, dtype);
  }
  DType parsed;
  EXPECT_FALSE(ParseDType("float", &parsed));
  EXPECT_FALSE(ParseDType("invalid", &parsed));
  EXPECT_FALSE(ParseDType("", &parsed));
}

TEST(DTypeTest, ValuesOutsideTheEnumAreHarmless) {
  EXPECT_FALSE(IsValidDType(0));
  EXPECT_FALSE(IsValidDType(kDTypeLimit));
  EXPECT_FALSE(IsValidDType(-1));
  EXPECT_TRUE(IsValidDType(1));
  const DType garbage = static_cast<DType>(200);
  EXPECT_EQ(DTypeName(garbage), "invalid");
  EXPECT_EQ(ItemSize(garbage), 1u);
}

TEST(DTypeTest, NarrowTypesAreComputedInWiderOnes) {
  std::string text;
  for (DType dtype : AllDTypes()) {
    text.append(" ").append(std::string(DTypeShortName(ComputeType(dtype))));
  }
  EXPECT_EQ(text, " bool u8 i32 i32 i32 i64 f32 f32 f32 f64 c64 c128");
}

TEST(DTypeTest, SizesAndCategories) {
  EXPECT_EQ(ItemSize(DType::kBool), 1u);
  EXPECT_EQ(ItemSize(DType::kInt32), 4u);
  EXPECT_EQ(ItemSize(DType::kFloat64), 8u);
  EXPECT_EQ(ItemSize(DType::kBFloat16), 2u);
  EXPECT_EQ(Category(DType::kBool), DTypeCategory::kBool);
  EXPECT_EQ(Category(DType::kUInt8), DTypeCategory::kInteger);
  EXPECT_TRUE(IsFloat(DType::kFloat16));
  EXPECT_TRUE(IsIntegral(DType::kBool));
}

// torch.promote_types, row by row in the enum's order.
TEST(DTypeTest, PromotionIsPyTorchs) {
  const char* const kTable[] = {
      "bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128",
      "u8 u8 i16 i16 i32 i64 f16 bf16 f32 f64 c64 c128",
      "i8 i16 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128",
      "i16 i16 i16 i16 i32 i64 f16 bf16 f32 f64 c64 c128",
      "i32 i32 i32 i32 i32 i64 f16 bf16 f32 f64 c64 c128",
      "i64 i64 i64 i64 i64 i64 f16 bf16 f32 f64 c64 c128",
      "f16 f16 f16 f16 f16 f16 f16 f32 f32 f64 c64 c128",
      "bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64 c64 c128",
      "f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128",
      "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
      "c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 c64 c128",
      "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
  };
  const std::vector<DType> all = AllDTypes();
  for (size_t row = 0; row < all.size(); ++row) {
    const std::vector<std::string> expected = absl::StrSplit(kTable[row], ' ');
    ASSERT_EQ(expected.size(), all.size());
    for (size_t column = 0; column < all.size(); ++column) {
      EXPECT_EQ(DTypeShortName(PromoteTypes(all[row], all[column])),
                expected[column])
          << DTypeName(all[row]) << " with " << DTypeName(all[column]);
    }
  }
}

}  // namespace
}  // namespace holdfast
