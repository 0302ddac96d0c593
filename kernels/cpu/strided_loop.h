// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// StridedLoop: several views walked together in one order, as the kernels that
// cope with any strides and types need it. Dimensions of size 1 vanish,
// neighbours that step evenly merge, and the elements are then reached by their
// position in that order, a block at a time: as a pointer where a view lies
// there without gaps and in the wanted type, else through a small buffer
// that is converted on the way. So no loop is compiled for a combination of
// types.
// Thread-safety: const after construction; does not own the views' data.
#ifndef HOLDFAST_KERNELS_CPU_STRIDED_LOOP_H_
#define HOLDFAST_KERNELS_CPU_STRIDED_LOOP_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/kernel.h"

namespace holdfast::cpu {

// Elements per block: buffers for a few operands fit the first-level cache.
inline constexpr int64_t kBlock = 1024;
// Elements per thread below which another thread does not pay.
inline constexpr int64_t kElementwiseGrain = 32768;
inline constexpr int kMaxLoopOperands = 5;

struct alignas(64) BlockBuffer {
  char bytes[kBlock * 16];
};

// What was loaded last of an operand, by one thread: one that repeats itself
// along the outer dimensions is not loaded again.
struct LoadedBlock {
  BlockBuffer buffer;
  int64_t begin = -1, count = 0;
};

class StridedLoop {
 public:
  enum class Order {
    kMemory,   // as views[0] lies in memory: the fastest
    kLogical,  // row-major by index, where positions have a meaning
  };

  // All views are broadcast to views[0]'s shape.
  explicit StridedLoop(absl::Span<const TensorView> views,
                       Order order = Order::kMemory);

  int64_t numel() const { return numel_; }
  int rank() const { return rank_; }
  int64_t size(int d) const { return sizes_[d]; }
  int64_t stride(int k, int d) const { return operands_[k].strides[d]; }
  // The element of operand k at a position.
  void* At(int k, int64_t position) const;
  // Operand k's elements follow each other without gaps in this loop's order.
  bool linear(int k) const { return operands_[k].linear; }

  // How many elements a block at `begin` takes: at most kBlock. Where rows are
  // long, not more than what is left of the row, so that operands repeated
  // along outer dimensions can be used in place; where they are short, whole
  // rows, so that the blocks of such operands are equal.
  int64_t BlockSize(int64_t begin, int64_t end) const {
    if (row_ >= numel_) return Smaller(end - begin, kBlock);
    if (row_ >= kLongRow) {
      return Smaller(end - begin,
                     Smaller(kBlock, row_ - Remainder(begin, row_)));
    }
    return Smaller(end - begin, kBlock - Remainder(begin + kBlock, row_));
  }

  // `n` elements of operand k from position `begin` as type `dtype`: in place
  // if possible, else in `buffer`. REQUIRES: n <= kBlock if a buffer is
  // needed.
  const void* Load(int k, DType dtype, int64_t begin, int64_t n,
                   BlockBuffer* buffer) const;
  // The same, from what `block` holds if that is it. REQUIRES: `block` is only
  // used for this operand and type.
  const void* Load(int k, DType dtype, int64_t begin, int64_t n,
                   LoadedBlock* block) const;
  // The same into memory of any size.
  void LoadInto(int k, DType dtype, int64_t begin, int64_t n, void* out) const;

  // Where to put a block of results of type `dtype` for operand k: its own
  // memory if possible, else `buffer`, which Store then writes back.
  void* Target(int k, DType dtype, int64_t begin, BlockBuffer* buffer) const;
  // Writes `n` elements to operand k; nothing to do if `from` is its memory.
  void Store(int k, DType dtype, int64_t begin, int64_t n,
             const void* from) const;

 private:
  struct Operand {
    char* data;
    DType dtype;
    bool linear;
    int64_t period;  // elements after which it repeats itself
    int64_t strides[kMaxRank];
  };

  static int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
  // a / b for a >= 0, b > 0: short divisions take a fraction of the time, and
  // there are several per row.
  static int64_t Quotient(int64_t a, int64_t b) {
    if (((a | b) >> 32) == 0) {
      return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
    }
    return a / b;
  }
  static int64_t Remainder(int64_t a, int64_t b) {
    return a - Quotient(a, b) * b;
  }
  // The elements lie in one row, and it is worth looking for it.
  bool InLongRow(int64_t begin, int64_t n) const {
    return row_ >= kLongRow && Remainder(begin, row_) + n <= row_;
  }

  static constexpr int64_t kLongRow = 512;

  char* Address(const Operand& operand, int64_t position) const;
  // Offset in elements of the element at a position.
  int64_t Offset(const Operand& operand, int64_t position) const;

  int rank_ = 0;
  int64_t numel_ = 1;
  int64_t row_ = 1;  // size of the innermost dimension
  int64_t sizes_[kMaxRank];
  Operand operands_[kMaxLoopOperands];
};

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_STRIDED_LOOP_H_
