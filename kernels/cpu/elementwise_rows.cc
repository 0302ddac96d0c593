// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise_rows.h"

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/dtype_dispatch.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/elementwise.h"

namespace holdfast {
namespace {

// Below a vector of float32 the buffer is the faster way; from a block's
// length on, it is filled once a row and costs nothing.
constexpr int64_t kShortest = 16;
constexpr int64_t kLongest = 512;

// `rows` rows of `n` elements that follow each other in `out`: numbers at
// `number`, `number_step` apart, with rows of `row`, `row_step` apart.
struct Rows {
  const void* number;
  const void* row;
  void* out;
  int64_t rows, n, number_step, row_step;
};

template <typename Op, typename T, bool kNumberFirst>
struct RowsBody {
  static HOLDFAST_INLINE void Run(Rows all) {
    const T* numbers = static_cast<const T*>(all.number);
    const T* row = static_cast<const T*>(all.row);
    T* out = static_cast<T*>(all.out);
    for (int64_t r = 0; r < all.rows; ++r) {
      const T number = LoadElement(numbers + r * all.number_step);
#pragma GCC ivdep
      for (int64_t i = 0; i < all.n; ++i) {
        const T element = LoadElement(row + i);
        out[i] = kNumberFirst ? Op::template Apply<T>(number, element)
                              : Op::template Apply<T>(element, number);
      }
      row += all.row_step;
      out += all.n;
    }
  }
};

using RowsLoop = void (*)(Rows);

template <typename Op, typename T>
RowsLoop PickSide(bool number_first) {
  return number_first ? &Vectorised<RowsBody<Op, T, true>, Rows>
                      : &Vectorised<RowsBody<Op, T, false>, Rows>;
}

template <typename T>
RowsLoop PickOp(OpId op, bool number_first) {
  namespace ops = elementwise::op;
  switch (op) {
    case OpId::add:
      return PickSide<ops::add, T>(number_first);
    case OpId::sub:
      return PickSide<ops::sub, T>(number_first);
    case OpId::mul:
      return PickSide<ops::mul, T>(number_first);
    case OpId::div:
      return PickSide<ops::div, T>(number_first);
    default:
      return nullptr;
  }
}

RowsLoop Pick(OpId op, DType type, bool number_first) {
  if (type == DType::kFloat32) return PickOp<float>(op, number_first);
  if (type == DType::kFloat64) return PickOp<double>(op, number_first);
  return nullptr;
}

}  // namespace

bool RunRowsWithNumbers(OpId op, DType type, const KernelContext& context,
                        const StridedLoop& walk) {
  const int last = walk.rank() - 1;
  if (last < 1 || !walk.linear(0)) return false;
  const int64_t n = walk.size(last);
  if (n < kShortest || n >= kLongest) return false;
  const int number = walk.stride(1, last) == 0 ? 1 : 2;
  const int row = 3 - number;
  if (walk.stride(number, last) != 0 || walk.stride(row, last) != 1) {
    return false;
  }
  const RowsLoop loop = Pick(op, type, number == 1);
  if (loop == nullptr) return false;
  const int64_t group = walk.size(last - 1);  // rows that step evenly
  ParallelFor(
      context, walk.numel() / n, kElementwiseGrain / n,
      [&](int64_t begin, int64_t end) {
        for (int64_t r = begin, count; r < end; r += count) {
          count = std::min(end - r, group - r % group);
          loop({walk.At(number, r * n), walk.At(row, r * n), walk.At(0, r * n),
                count, n, walk.stride(number, last - 1),
                walk.stride(row, last - 1)});
        }
      });
  return true;
}

}  // namespace holdfast
