// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/test_context.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

using testing::ElementsAre;

TestTensor Create(KernelFn kernel, const Attrs& attrs, int threads = 1) {
  TestContext context(threads);
  const auto out = RunOp(kernel, context, attrs, {});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[0] : TestTensor(DType::kFloat32, {0});
}

TestTensor Arange(AttrValue start, AttrValue end, AttrValue step,
                  AttrValue dtype = {}, int threads = 1) {
  Attrs attrs(&GetOp(OpId::arange));
  attrs.Set("start", std::move(start));
  attrs.Set("end", std::move(end));
  attrs.Set("step", std::move(step));
  attrs.Set("dtype", std::move(dtype));
  return Create(&Cpu_arange, attrs, threads);
}

TEST(CreationTest, EmptyHasItsShape) {
  Attrs attrs(&GetOp(OpId::empty));
  attrs.Set("size", AttrValue(Dims{2, 3}));
  EXPECT_EQ(Create(&Cpu_empty, attrs).spec().ToString(), "f32[2,3]");
}

TEST(CreationTest, Full) {
  for (DType dtype : {DType::kBool, DType::kUInt8, DType::kInt64,
                      DType::kFloat32, DType::kFloat64}) {
    Attrs attrs(&GetOp(OpId::full));
    attrs.Set("size", AttrValue(Dims{70001}));
    attrs.Set("fill_value", AttrValue(int64_t{1}));
    attrs.Set("dtype", AttrValue(dtype));
    EXPECT_THAT(Create(&Cpu_full, attrs, 2).Values(), testing::Each(1));
  }
  Attrs attrs(&GetOp(OpId::full));
  const Dims scalar;
  attrs.Set("size", AttrValue(scalar));
  attrs.Set("fill_value", AttrValue(2.5));
  EXPECT_THAT(Create(&Cpu_full, attrs).Values(), ElementsAre(2.5));
}

TEST(CreationTest, Arange) {
  EXPECT_THAT(Arange(int64_t{2}, int64_t{9}, int64_t{3}).Values(),
              ElementsAre(2, 5, 8));
  EXPECT_THAT(Arange(int64_t{3}, int64_t{0}, int64_t{-1}).Values(),
              ElementsAre(3, 2, 1));
  EXPECT_THAT(Arange(0.0, 1.0, 0.25, DType::kFloat64).Values(),
              ElementsAre(0, 0.25, 0.5, 0.75));
  EXPECT_EQ(Arange(int64_t{5}, int64_t{5}, int64_t{1}).numel(), 0);
  // No error accumulates, and integers stay exact beyond 2^53.
  const TestTensor floats =
      Arange(int64_t{0}, 10000.0, 0.1, DType::kFloat32, 2);
  ASSERT_EQ(floats.numel(), 100000);
  EXPECT_EQ(floats.Get(99999), static_cast<float>(99999 * 0.1));
  const int64_t big = (int64_t{1} << 60) + 1;
  EXPECT_EQ(Arange(big, big + 3, int64_t{1}).data<int64_t>()[2], big + 2);
}

TEST(CreationTest, Eye) {
  Attrs attrs(&GetOp(OpId::eye));
  attrs.Set("n", AttrValue(int64_t{2}));
  attrs.Set("m", AttrValue(int64_t{3}));
  EXPECT_THAT(Create(&Cpu_eye, attrs).Values(), ElementsAre(1, 0, 0, 0, 1, 0));
  attrs.Set("n", AttrValue(int64_t{3}));
  attrs.Set("m", AttrValue(int64_t{2}));
  attrs.Set("dtype", AttrValue(DType::kBool));
  EXPECT_THAT(Create(&Cpu_eye, attrs).Values(), ElementsAre(1, 0, 0, 1, 0, 0));
}

}  // namespace
}  // namespace holdfast::cpu
