// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// flip of rows long enough for several threads.
#include "kernels/cpu/op_testing.h"
#include "ops/op_id.h"

namespace holdfast::cpu {
namespace {

TEST(FlipTest, LongRowsOfEverySize) {
  for (DType dtype : {DType::kUInt8, DType::kInt32, DType::kFloat64}) {
    for (int64_t rows : {1, 3}) {
      const int64_t cols = 70001;
      TestTensor t(dtype, {rows, cols});
      for (int64_t i = 0; i < t.numel(); ++i) t.Set(i, i % 251);
      for (int threads : {1, 2, 3}) {
        const TestTensor got =
            Op(OpId::flip, {{"dims", AttrValue(Dims{-1})}}, {t}, threads);
        const TestTensor both =
            Op(OpId::flip, {{"dims", AttrValue(Dims{0, 1})}}, {t}, threads);
        for (int64_t i = 0; i < t.numel(); ++i) {
          const int64_t row = i / cols, col = i % cols;
          ASSERT_EQ(got.Get(i), t.Get(row * cols + cols - 1 - col));
          ASSERT_EQ(both.Get(i), t.Get(t.numel() - 1 - i));
        }
      }
    }
  }
}

}  // namespace
}  // namespace holdfast::cpu
