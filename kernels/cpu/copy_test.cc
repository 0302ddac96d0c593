// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
// to, clone, copy, fill, and the copies that other kernels use.
#include "kernels/cpu/copy.h"

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

const DType kTypes[] = {DType::kBool,  DType::kUInt8,   DType::kInt32,
                        DType::kInt64, DType::kFloat32, DType::kFloat64};

void FillCounting(const TestTensor& t) {
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.Set(i, t.dtype() == DType::kBool ? i % 2 : i % 120);
  }
}

TEST(CopyTest, EveryPairOfTypesOverLayouts) {
  for (DType from : kTypes) {
    for (DType to : kTypes) {
      const TestTensor sources[] = {
          TestTensor(from, {9, 20}),
          TestTensor(from, {20, 9}).Transpose(0, 1),
          TestTensor(from, {30, 50}).Slice(0, 3, 12).Slice(1, 5, 45, 2),
          TestTensor(from, {20}).Expand({9, 20}),
          TestTensor(from, {9, 1}).Expand({9, 20}),
      };
      const TestTensor targets[] = {
          TestTensor(to, {9, 20}),
          TestTensor(to, {20, 9}).Transpose(0, 1),
          TestTensor(to, {30, 50}).Slice(0, 3, 12).Slice(1, 5, 45, 2),
      };
      for (const TestTensor& source : sources) {
        for (const TestTensor& target : targets) {
          FillCounting(source);
          TestContext context;
          CopyStrided(context, source.view(), target.view());
          for (int64_t i = 0; i < target.numel(); ++i) {
            const double value = source.Get(i);
            ASSERT_EQ(target.Get(i), to == DType::kBool ? value != 0 : value)
                << source.spec().ToString() << target.spec().ToString() << i;
          }
        }
      }
    }
  }
}

void ExpectClone(const TestTensor& source) {
  TestContext context(2);
  const auto out =
      RunOp(&Cpu_clone, context, Attrs(&GetOp(OpId::clone)), {source});
  ASSERT_TRUE(out.ok());
  ASSERT_TRUE((*out)[0].spec().contiguous());
  for (int64_t i = 0; i < source.numel(); ++i) {
    ASSERT_EQ((*out)[0].Get(i), source.Get(i)) << i;
  }
}

// Large enough for two threads; matrices in either order, in stacks too.
TEST(CopyTest, LargeTransposes) {
  for (DType dtype : {DType::kUInt8, DType::kFloat32, DType::kFloat64}) {
    for (const Dims& shape :
         {Dims{317, 411}, Dims{3, 211, 117}, Dims{2, 3, 100, 130}}) {
      const int rank = static_cast<int>(shape.size());
      const TestTensor base(dtype, shape);
      FillCounting(base);
      ExpectClone(base.Transpose(rank - 2, rank - 1));
    }
    // [N, H, W, C] seen as [N, C, H, W], and back.
    for (const Dims& shape : {Dims{3, 30, 40, 20}, Dims{1, 50, 9, 64}}) {
      const TestTensor base(dtype, shape);
      FillCounting(base);
      ExpectClone(base.Transpose(2, 3).Transpose(1, 2));
      ExpectClone(base.Transpose(1, 2).Transpose(2, 3));
    }
  }
}

TEST(CopyTest, LargeContiguousAndSizes) {
  for (int64_t n : {0, 1, 7, 1000, 1000003}) {
    const TestTensor source(DType::kFloat32, {n});
    FillCounting(source);
    TestContext context(2);
    const auto out =
        RunOp(&Cpu_clone, context, Attrs(&GetOp(OpId::clone)), {source});
    ASSERT_TRUE(out.ok());
    EXPECT_EQ((*out)[0].Values(), source.Values());
  }
}

TEST(ToTest, NumbersThatDoNotFit) {
  const double inf = std::numeric_limits<double>::infinity();
  const TestTensor source(DType::kFloat64, {6},
                          {std::nan(""), inf, -inf, 3e9, -1.5, 300});
  auto to = [&](DType dtype) {
    Attrs attrs(&GetOp(OpId::to));
    attrs.Set("dtype", AttrValue(dtype));
    TestContext context;
    const auto out = RunOp(&Cpu_to, context, attrs, {source});
    EXPECT_TRUE(out.ok());
    return (*out)[0];
  };
  using testing::ElementsAre;
  EXPECT_THAT(to(DType::kInt32).Values(),
              ElementsAre(0, 2147483647, -2147483648.0, 2147483647, -1, 300));
  const TestTensor wide = to(DType::kInt64);
  EXPECT_EQ(wide.data<int64_t>()[0], 0);
  EXPECT_EQ(wide.data<int64_t>()[1], std::numeric_limits<int64_t>::max());
  EXPECT_EQ(wide.data<int64_t>()[2], std::numeric_limits<int64_t>::min());
  EXPECT_EQ(wide.data<int64_t>()[3], 3000000000);
  const TestTensor bytes = to(DType::kUInt8);
  EXPECT_EQ(bytes.Get(4), 255);  // -1 modulo 256
  EXPECT_EQ(bytes.Get(5), 44);
  EXPECT_THAT(to(DType::kBool).Values(), ElementsAre(1, 1, 1, 1, 1, 1));
}

TEST(CopyTest, IntoPartOfATensorBroadcastAndConverted) {
  const TestTensor whole(DType::kFloat32, {4, 6});
  Attrs fill(&GetOp(OpId::fill));
  fill.Set("value", AttrValue(int64_t{-1}));
  TestContext context;
  ASSERT_TRUE(RunOp(&Cpu_fill, context, fill, {whole}, true).ok());
  const TestTensor part = whole.Slice(0, 1, 3).Slice(1, 0, 6, 3);
  const TestTensor source(DType::kInt64, {2}, {10, 20});
  ASSERT_TRUE(
      RunOp(&Cpu_copy, context, Attrs(&GetOp(OpId::copy)), {part, source}, true)
          .ok());
  EXPECT_THAT(whole.Values(), testing::ElementsAre(-1, -1, -1, -1, -1, -1,  //
                                                   10, -1, -1, 20, -1, -1,  //
                                                   10, -1, -1, 20, -1, -1,  //
                                                   -1, -1, -1, -1, -1, -1));
}

TEST(FillTest, TypesAndStrides) {
  for (DType dtype : kTypes) {
    const TestTensor whole(dtype, {300, 400});
    for (int64_t i = 0; i < whole.numel(); ++i) whole.Set(i, 0);
    const TestTensor part = whole.Transpose(0, 1).Slice(0, 1, 399, 2);
    TestContext context(2);
    Attrs attrs(&GetOp(OpId::fill));
    attrs.Set("value", AttrValue(int64_t{1}));
    ASSERT_TRUE(RunOp(&Cpu_fill, context, attrs, {part}, true).ok());
    for (int64_t i = 0; i < whole.numel(); ++i) {
      const int64_t column = i % 400;
      ASSERT_EQ(whole.Get(i), column % 2 == 1 && column < 399) << i;
    }
    const TestTensor dense(dtype, {100003});
    ASSERT_TRUE(RunOp(&Cpu_fill, context, attrs, {dense}, true).ok());
    EXPECT_THAT(dense.Values(), testing::Each(1));
  }
}

TEST(MakeContiguousTest, CopiesOnlyWhenItMust) {
  const TestTensor t(DType::kFloat32, {3, 5});
  FillCounting(t);
  TestContext context;
  TensorSpec spec;
  TensorView out;
  ASSERT_TRUE(
      MakeContiguous(context, t.view(), DType::kFloat32, &spec, &out).ok());
  EXPECT_EQ(out.data, t.view().data);
  const TestTensor turned = t.Transpose(0, 1);
  ASSERT_TRUE(
      MakeContiguous(context, turned.view(), DType::kFloat64, &spec, &out)
          .ok());
  EXPECT_TRUE(out.spec->contiguous());
  for (int64_t i = 0; i < 15; ++i) {
    EXPECT_EQ(out.as<double>()[i], turned.Get(i));
  }
  context.limit = 10;
  EXPECT_TRUE(absl::IsResourceExhausted(
      MakeContiguous(context, turned.view(), DType::kFloat32, &spec, &out)));
}

}  // namespace
}  // namespace holdfast::cpu
