// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows with one number each or one row for all, of every length that has a loop
// of its own and of those beside them.
#include "kernels/cpu/elementwise_rows.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/op_testing.h"
#include "ops/op_id.h"

namespace holdfast::cpu {
namespace {

double Result(OpId op, double a, double b) {
  if (op == OpId::add) return a + b;
  if (op == OpId::sub) return a - b;
  return op == OpId::mul ? a * b : a / b;
}

// Small whole numbers: exact in either type but for quotients by 3.
TestTensor Filled(DType type, const Dims& shape, int64_t first) {
  TestTensor tensor(type, shape);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.Set(i, static_cast<double>((i + first) % 4 + 1) *
                      ((i + first) % 4 == 2 ? 4.0 / 3 : 1));
  }
  return tensor;
}

// `a` and `b` broadcast to [n0, n1, n2, n3], in either order.
void Check(DType type, const Dims& a_shape, const Dims& b_shape, int threads) {
  const TestTensor a = Filled(type, a_shape, 0), b = Filled(type, b_shape, 1);
  for (const OpId op : {OpId::add, OpId::sub, OpId::mul, OpId::div}) {
    const TestTensor out = Op(op, {}, {a, b}, threads);
    const Dims& shape = out.spec().shape;
    const auto at = [&](const TestTensor& t, int64_t position) {
      int64_t offset = 0, stride = 1;
      for (int d = 3; d >= 0; --d) {
        const int64_t index = position % shape[d];
        position /= shape[d];
        if (t.spec().shape[d] > 1) offset += index * stride;
        stride *= t.spec().shape[d];
      }
      return t.Get(offset);
    };
    for (int64_t i = 0; i < out.numel(); ++i) {
      const double exact = Result(op, at(a, i), at(b, i));
      const double want =
          type == DType::kFloat32 ? static_cast<float>(exact) : exact;
      ASSERT_EQ(out.Get(i), want)
          << GetOp(op).name << " at " << i << " of " << a.spec().ToString()
          << " and " << b.spec().ToString() << ", threads " << threads;
    }
  }
}

TEST(ShortRowsTest, EveryLengthAndSide) {
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kInt64}) {
    for (const int64_t n : {1, 15, 16, 17, 32, 100, 511, 512}) {
      if (type == DType::kInt64 && n > 17) continue;
      Check(type, {1, 1, 7, n}, {1, 1, 7, 1}, 1);  // a column
      Check(type, {1, 1, 7, 1}, {1, 1, 7, n}, 1);
      Check(type, {1, 1, 7, 1}, {1, 1, 1, n}, 1);  // an outer product
      Check(type, {3, 1, 5, 1}, {1, 2, 1, n}, 1);  // kron
      Check(type, {1, 1, 7, n}, {1, 1, 1, n}, 1);  // a bias
      Check(type, {3, 1, 1, n}, {3, 2, 5, n}, 1);
      Check(type, {3, 1, 5, n}, {1, 2, 5, n}, 1);
      Check(type, {3, 2, 1, n}, {1, 2, 5, 1}, 1);
    }
  }
}

TEST(ShortRowsTest, ThreadsBeginAnywhere) {
  Check(DType::kFloat32, {31, 1, 37, 1}, {1, 29, 1, 18}, 2);
  Check(DType::kFloat64, {31, 29, 37, 18}, {31, 1, 37, 1}, 2);
  Check(DType::kFloat32, {31, 29, 37, 18}, {1, 29, 1, 18}, 2);
}

TEST(ShortRowsTest, InPlaceAndTransposed) {
  const TestTensor x = Filled(DType::kFloat32, {50, 40}, 0);
  const std::vector<double> before = x.Values();
  const TestTensor column = Filled(DType::kFloat32, {50, 1}, 2);
  ASSERT_TRUE(OpInPlace(OpId::sub, {}, {x, column}).ok());
  for (int64_t i = 0; i < x.numel(); ++i) {
    ASSERT_EQ(x.Get(i), static_cast<float>(before[i] - column.Get(i / 40)));
  }
  // The result lies in memory as x.t() does: rows of 50 with a number each.
  const TestTensor turned = x.Transpose(0, 1);
  const TestTensor numbers = Filled(DType::kFloat32, {40, 1}, 1);
  const TestTensor out = Op(OpId::mul, {}, {turned, numbers});
  for (int64_t i = 0; i < out.numel(); ++i) {
    ASSERT_EQ(out.Get(i),
              static_cast<float>(turned.Get(i) * numbers.Get(i / 50)));
  }
}

}  // namespace
}  // namespace holdfast::cpu
