// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/attrs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "ops/op_schema.h"

namespace holdfast {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(AttrsTest, UnsetSlotsReadAsDefaults) {
  Attrs attrs(FindOp("conv2d"));
  EXPECT_EQ(attrs.Ints("stride"), (Dims{1, 1}));
  EXPECT_EQ(attrs.Ints("padding"), (Dims{0, 0}));
  EXPECT_EQ(attrs.Int("groups"), 1);
  EXPECT_FALSE(attrs.IsSet(0));
  Attrs sgd(FindOp("sgd"));
  EXPECT_EQ(sgd.Float("momentum"), 0.0);
  EXPECT_FALSE(sgd.Bool("nesterov"));
  Attrs loss(FindOp("nll_loss"));
  EXPECT_EQ(loss.Str("reduction"), "mean");
  EXPECT_EQ(loss.Int("ignore_index"), -100);
  Attrs sum(FindOp("sum"));
  EXPECT_TRUE(sum.None("dim"));
  EXPECT_TRUE(sum.None("dtype"));
  EXPECT_EQ(sum.DTypeOr("dtype", DType::kInt32), DType::kInt32);
}

TEST(AttrsTest, SetBySlotAndByName) {
  Attrs attrs(FindOp("sum"));
  attrs.Set("keepdim", true);
  attrs.Set("dtype", DType::kFloat64);
  EXPECT_TRUE(attrs.Bool("keepdim"));
  EXPECT_EQ(attrs.DTypeOr("dtype", DType::kInt32), DType::kFloat64);
  EXPECT_TRUE(attrs.None("dim"));
  EXPECT_FALSE(attrs.IsSet(0));
  EXPECT_TRUE(attrs.IsSet(1));
  EXPECT_TRUE(attrs.IsSet(2));
  attrs.Set(1, false);
  EXPECT_FALSE(attrs.Bool("keepdim"));
}

TEST(AttrsTest, IntListsHaveOneStoredForm) {
  Attrs conv(FindOp("conv2d"));
  conv.Set("stride", int64_t{3});
  EXPECT_EQ(conv.Ints("stride"), (Dims{3, 3}));
  conv.Set("stride", Dims{4});
  EXPECT_EQ(conv.Ints("stride"), (Dims{4, 4}));
  conv.Set("stride", Dims{4, 5});
  EXPECT_EQ(conv.Ints("stride"), (Dims{4, 5}));
  Attrs sum(FindOp("sum"));
  sum.Set("dim", int64_t{-1});
  EXPECT_EQ(sum.Ints("dim"), Dims{-1});
  // A plain int stays one.
  Attrs cumsum(FindOp("cumsum"));
  cumsum.Set("dim", int64_t{2});
  EXPECT_EQ(cumsum.Int("dim"), 2);
}

TEST(AttrsTest, FloatsAcceptAnyNumber) {
  Attrs attrs(FindOp("sgd"));
  attrs.Set("lr", int64_t{2});
  EXPECT_EQ(attrs.Float("lr"), 2.0);
  attrs.Set("lr", true);
  EXPECT_EQ(attrs.Float("lr"), 1.0);
}

TEST(AttrsTest, OperandsOwnASlot) {
  Attrs attrs(FindOp("add"));
  attrs.Set("other", 2.5);
  EXPECT_TRUE(IsNone(attrs.Get(0)));
  EXPECT_EQ(AttrAsDouble(attrs.Get(1)), 2.5);
}

TEST(AttrsTest, CopiesAreIndependent) {
  Attrs a(FindOp("view"));
  a.Set("size", Dims{1, 2, 3, 4, 5, 6, 7});
  Attrs b = a;
  b.Set("size", Dims{1});
  EXPECT_EQ(a.Ints("size").size(), 7u);
  EXPECT_EQ(b.Ints("size"), Dims{1});
}

TEST(AttrValueTest, AsInt) {
  EXPECT_EQ(AttrAsInt(AttrValue(true)), 1);
  EXPECT_EQ(AttrAsInt(AttrValue(int64_t{-5})), -5);
  EXPECT_EQ(AttrAsInt(AttrValue(2.9)), 2);
  EXPECT_EQ(AttrAsInt(AttrValue(-2.9)), -2);
  EXPECT_EQ(AttrAsInt(AttrValue(1e300)), kMax);
  EXPECT_EQ(AttrAsInt(AttrValue(-1e300)), kMin);
  EXPECT_EQ(AttrAsInt(AttrValue(9223372036854775808.0)), kMax);
  EXPECT_EQ(AttrAsInt(AttrValue(-9223372036854775808.0)), kMin);
  EXPECT_EQ(AttrAsInt(AttrValue(std::nan(""))), 0);
  EXPECT_EQ(AttrAsInt(AttrValue(INFINITY)), kMax);
}

TEST(AttrValueTest, TextIsPythons) {
  EXPECT_EQ(AttrToString(AttrValue()), "None");
  EXPECT_EQ(AttrToString(AttrValue(true)), "True");
  EXPECT_EQ(AttrToString(AttrValue(int64_t{7})), "7");
  EXPECT_EQ(AttrToString(AttrValue(2.0)), "2.0");
  EXPECT_EQ(AttrToString(AttrValue(0.1)), "0.1");
  EXPECT_EQ(AttrToString(AttrValue(1e-8)), "1e-08");
  EXPECT_EQ(AttrToString(AttrValue(1.0 / 3)), "0.33333333333333331");
  EXPECT_EQ(AttrToString(AttrValue(-INFINITY)), "-inf");
  EXPECT_EQ(AttrToString(AttrValue(std::nan(""))), "nan");
  EXPECT_EQ(AttrToString(AttrValue(DType::kFloat32)), "float32");
  EXPECT_EQ(AttrToString(AttrValue(Dims{1, -1})), "[1,-1]");
  EXPECT_EQ(AttrToString(AttrValue(std::string("mean"))), "'mean'");
}

TEST(AttrValueTest, ClientTextIsBoundedAndPrintable) {
  EXPECT_EQ(AttrToString(AttrValue(std::string("\x01\xff"))), "'\\x01\\xff'");
  const std::string text = AttrToString(AttrValue(std::string(100000, 'x')));
  EXPECT_LT(text.size(), 100u);
}

}  // namespace
}  // namespace holdfast
