// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise_rows.h"

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/elementwise.h"

namespace holdfast::cpu {
namespace {

// Below a vector of float32 the buffer is the faster way; from a block's
// length on, it is filled once a row and costs nothing.
constexpr int64_t kShortest = 16;
constexpr int64_t kLongest = 512;

// `rows` rows of `n` elements that follow each other in `out`. Those of a and b
// begin `a_step` and `b_step` elements apart.
struct Rows {
  const void* a;
  const void* b;
  void* out;
  int64_t rows, n, a_step, b_step;
};

// What a row has of an operand.
enum class Part { kRow, kNumber };

template <typename Op, typename T, Part kA, Part kB>
struct RowsBody {
  static HOLDFAST_INLINE void Run(Rows all) {
    const T* a = static_cast<const T*>(all.a);
    const T* b = static_cast<const T*>(all.b);
    T* out = static_cast<T*>(all.out);
    for (int64_t r = 0; r < all.rows; ++r) {
      const T a_number = LoadElement(a);
      const T b_number = LoadElement(b);
#pragma GCC ivdep
      for (int64_t i = 0; i < all.n; ++i) {
        out[i] = Op::template Apply<T>(
            kA == Part::kNumber ? a_number : LoadElement(a + i),
            kB == Part::kNumber ? b_number : LoadElement(b + i));
      }
      a += all.a_step;
      b += all.b_step;
      out += all.n;
    }
  }
};

using RowsLoop = void (*)(Rows);

template <typename Op, typename T>
RowsLoop PickParts(Part a, Part b) {
  if (a == Part::kNumber) {
    return &Vectorised<RowsBody<Op, T, Part::kNumber, Part::kRow>, Rows>;
  }
  if (b == Part::kNumber) {
    return &Vectorised<RowsBody<Op, T, Part::kRow, Part::kNumber>, Rows>;
  }
  return &Vectorised<RowsBody<Op, T, Part::kRow, Part::kRow>, Rows>;
}

template <typename T>
RowsLoop PickOp(OpId op, Part a, Part b) {
  namespace ops = elementwise::op;
  switch (op) {
    case OpId::add:
      return PickParts<ops::add, T>(a, b);
    case OpId::sub:
      return PickParts<ops::sub, T>(a, b);
    case OpId::mul:
      return PickParts<ops::mul, T>(a, b);
    case OpId::div:
      return PickParts<ops::div, T>(a, b);
    default:
      return nullptr;
  }
}

RowsLoop Pick(OpId op, DType type, Part a, Part b) {
  if (type == DType::kFloat32) return PickOp<float>(op, a, b);
  if (type == DType::kFloat64) return PickOp<double>(op, a, b);
  return nullptr;
}

}  // namespace

bool RunShortRows(OpId op, DType type, const KernelContext& context,
                  const StridedLoop& walk) {
  const int last = walk.rank() - 1;
  if (last < 1 || !walk.linear(0)) return false;
  const int64_t n = walk.size(last);
  if (n < kShortest || n >= kLongest) return false;
  Part parts[3];
  for (const int k : {1, 2}) {
    const int64_t stride = walk.stride(k, last);
    if (stride != 0 && stride != 1) return false;
    parts[k] = stride == 0 ? Part::kNumber : Part::kRow;
  }
  if (parts[1] == Part::kNumber && parts[2] == Part::kNumber) return false;
  const RowsLoop loop = Pick(op, type, parts[1], parts[2]);
  if (loop == nullptr) return false;
  const int64_t group = walk.size(last - 1);  // rows that step evenly
  ParallelFor(
      context, walk.numel() / n, kElementwiseGrain / n,
      [&](int64_t begin, int64_t end) {
        for (int64_t r = begin, count; r < end; r += count) {
          count = std::min(end - r, group - r % group);
          const int64_t first = r * n;
          loop({walk.At(1, first), walk.At(2, first), walk.At(0, first), count,
                n, walk.stride(1, last - 1), walk.stride(2, last - 1)});
        }
      });
  return true;
}

}  // namespace holdfast::cpu
