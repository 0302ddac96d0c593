// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
// where and clamp.
#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/test_context.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(WhereTest, ChoosesOverTypesAndLayouts) {
  const DType types[] = {DType::kBool,  DType::kUInt8,   DType::kInt32,
                         DType::kInt64, DType::kFloat32, DType::kFloat64};
  for (DType a_type : types) {
    for (DType b_type : types) {
      for (int threads : {1, 2}) {
        const int64_t rows = threads == 1 ? 11 : 301, cols = 307;
        const TestTensor condition(DType::kBool, {rows, cols});
        const TestTensor a = TestTensor(a_type, {cols, rows}).Transpose(0, 1);
        const TestTensor b(b_type, {cols});
        for (int64_t i = 0; i < condition.numel(); ++i) {
          condition.Set(i, i % 3 == 0);
          a.Set(i, i % 101);
        }
        for (int64_t i = 0; i < cols; ++i) b.Set(i, i % 99);
        TestContext context(threads);
        const auto out = RunOp(&Cpu_where, context, Attrs(&GetOp(OpId::where)),
                               {condition, a, b});
        ASSERT_TRUE(out.ok()) << out.status();
        const TestTensor& result = (*out)[0];
        EXPECT_EQ(result.dtype(), PromoteTypes(a_type, b_type));
        for (int64_t i = 0; i < condition.numel(); ++i) {
          ASSERT_EQ(result.Get(i), i % 3 == 0 ? a.Get(i) : b.Get(i % cols))
              << i << " " << a.spec().ToString() << " " << b.spec().ToString();
        }
      }
    }
  }
}

TEST(WhereTest, ScalarsAndEmpty) {
  const TestTensor yes(DType::kBool, {}, {1});
  const TestTensor a(DType::kFloat32, {}, {2.5}), b(DType::kFloat32, {3});
  for (int i = 0; i < 3; ++i) b.Set(i, i);
  TestContext context;
  const Attrs attrs(&GetOp(OpId::where));
  const auto out = RunOp(&Cpu_where, context, attrs, {yes, a, b});
  ASSERT_TRUE(out.ok());
  EXPECT_THAT((*out)[0].Values(), testing::ElementsAre(2.5, 2.5, 2.5));
  EXPECT_TRUE(
      RunOp(&Cpu_where, context, attrs, {yes, a, b.Slice(0, 0, 0)}).ok());
}

std::vector<double> RunClamp(const TestTensor& input, AttrValue min,
                             AttrValue max, bool inplace = false) {
  Attrs attrs(&GetOp(OpId::clamp));
  attrs.Set("min", std::move(min));
  attrs.Set("max", std::move(max));
  TestContext context(2);
  const auto out = RunOp(&Cpu_clamp, context, attrs, {input}, inplace);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[0].Values() : std::vector<double>();
}

TEST(ClampTest, Bounds) {
  const AttrValue none;
  const TestTensor f(DType::kFloat32, {4}, {-2, 0.5, 3, kNan});
  using testing::ElementsAre;
  using testing::IsNan;
  EXPECT_THAT(RunClamp(f, -1.0, 1.0), ElementsAre(-1, 0.5, 1, IsNan()));
  EXPECT_THAT(RunClamp(f, none, 1.0), ElementsAre(-2, 0.5, 1, IsNan()));
  EXPECT_THAT(RunClamp(f, -1.0, none), ElementsAre(-1, 0.5, 3, IsNan()));
  // The upper bound wins, and a bound that is NaN makes everything NaN.
  EXPECT_THAT(RunClamp(f, 2.0, 1.0), ElementsAre(1, 1, 1, IsNan()));
  EXPECT_THAT(RunClamp(f, kNan, 1.0), testing::Each(IsNan()));
  EXPECT_THAT(RunClamp(f, 0.0, kNan), testing::Each(IsNan()));
}

TEST(ClampTest, Integers) {
  const TestTensor bytes(DType::kUInt8, {3}, {0, 100, 255});
  using testing::ElementsAre;
  EXPECT_THAT(RunClamp(bytes, int64_t{10}, int64_t{1000}),
              ElementsAre(10, 100, 255));
  EXPECT_THAT(RunClamp(bytes, int64_t{-5}, int64_t{200}),
              ElementsAre(0, 100, 200));
  const TestTensor ints(DType::kInt32, {2}, {-7, 7});
  EXPECT_THAT(RunClamp(ints, -2.5, 2.5), ElementsAre(-2.5, 2.5));  // floats
}

TEST(ClampTest, LargeStridedInPlace) {
  const TestTensor t = TestTensor(DType::kFloat64, {400, 300}).Transpose(0, 1);
  for (int64_t i = 0; i < t.numel(); ++i) t.Set(i, i % 100);
  RunClamp(t, 10.0, 90.0, true);
  for (int64_t i = 0; i < t.numel(); ++i) {
    ASSERT_EQ(t.Get(i), std::min(std::max(i % 100, int64_t{10}), int64_t{90}));
  }
}

}  // namespace
}  // namespace holdfast::cpu
