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

namespace holdfast {

// Elements per block: buffers for a few operands fit the first-level cache.
inline constexpr int64_t kBlock = 1024;
// Elements per thread below which another thread does not pay.
inline constexpr int64_t kElementwiseGrain = 32768;
inline constexpr int kMaxLoopOperands = 5;

struct alignas(64) BlockBuffer {
  char bytes[kBlock * 16];
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
  // Operand k's elements follow each other without gaps in this loop's order.
  bool linear(int k) const { return operands_[k].linear; }

  // How many elements a block at `begin` takes: at most kBlock, and where rows
  // are long, not more than what is left of the row, so that operands repeated
  // along outer dimensions can be used in place.
  int64_t BlockSize(int64_t begin, int64_t end) const {
    int64_t n = end - begin < kBlock ? end - begin : kBlock;
    if (row_ >= kLongRow && row_ < numel_) {
      const int64_t left = row_ - begin % row_;
      if (left < n) n = left;
    }
    return n;
  }

  // `n` elements of operand k from position `begin` as type `dtype`: in place
  // if possible, else in `buffer`. REQUIRES: n <= kBlock if a buffer is
  // needed.
  const void* Load(int k, DType dtype, int64_t begin, int64_t n,
                   BlockBuffer* buffer) const;
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
    int64_t strides[kMaxRank];
  };

  static constexpr int64_t kLongRow = 256;

  char* Address(const Operand& operand, int64_t position) const;
  // Offset in elements of the element at a position.
  int64_t Offset(const Operand& operand, int64_t position) const;

  int rank_ = 0;
  int64_t numel_ = 1;
  int64_t row_ = 1;  // size of the innermost dimension
  int64_t sizes_[kMaxRank];
  Operand operands_[kMaxLoopOperands];
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CPU_STRIDED_LOOP_H_
