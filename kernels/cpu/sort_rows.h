// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The loop structure of ops that order the elements along one dimension: rows
// of a tensor, each with a thread and that thread's scratch memory. Where there
// are fewer rows than threads, a row gets all of them.
// Thread-safety: RowLayout is a plain value; ForEachRow is reentrant.
#ifndef HOLDFAST_KERNELS_CPU_SORT_ROWS_H_
#define HOLDFAST_KERNELS_CPU_SORT_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/sort_items.h"
#include "kernels/cpu/strided_cursor.h"
#include "kernels/kernel.h"
#include "ops/tensor_spec.h"

namespace holdfast::cpu {

struct RowLayout {
  Dims shape, strides, out_strides;  // of the dimensions that count rows
  int64_t rows = 1;
  int64_t n = 1, stride = 1;  // along the row
  int64_t out_stride = 1;
};

// Rows of `input` along `dim`. `output` has input's rank, or lacks `dim`; then
// it is contiguous.
absl::Status MakeRowLayout(const TensorSpec& input, int64_t dim,
                           const TensorSpec& output, RowLayout* layout);

// Whether one row is shared by all threads.
inline bool OneRowAtATime(const KernelContext& context,
                          const RowLayout& layout) {
  constexpr int64_t kLong = 1 << 16;
  return layout.rows < context.num_threads && layout.n >= kLong;
}

// One thread of a loop over rows: what stops the loop stops the row.
class RowContext final : public KernelContext {
 public:
  explicit RowContext(const KernelContext& loop) { stop = loop.stop; }
  void* Scratch(size_t) override { return nullptr; }
};

// Calls row(context, in, out, scratch) for every row: its first elements'
// offsets, and `bytes` of scratch memory that no other call has at the time.
// `context` grants the threads that the call may use.
template <typename Row>
absl::Status ForEachRow(KernelContext& context, const RowLayout& layout,
                        int64_t bytes, Row&& row) {
  const bool one = OneRowAtATime(context, layout);
  const int64_t grain = std::max<int64_t>(1, 4096 / layout.n);
  bytes = (bytes + 63) / 64 * 64;
  const int64_t slots =
      one ? 1
          : std::min<int64_t>(context.num_threads,
                              (layout.rows + grain - 1) / grain);
  char* scratch = static_cast<char*>(context.Scratch(bytes * slots));
  if (scratch == nullptr) {
    return absl::ResourceExhaustedError("scratch memory for sorting");
  }
  if (one) {
    StridedCursor<2> at(layout.shape,
                        {layout.strides.data(), layout.out_strides.data()});
    for (int64_t i = 0; i < layout.rows; ++i, at.Next()) {
      row(context, at[0], at[1], scratch);
    }
    return absl::OkStatus();
  }
  ParallelFor(context, layout.rows, grain, [&](int64_t b, int64_t e) {
    RowContext thread(context);
    char* own = scratch + omp_get_thread_num() % slots * bytes;
    StridedCursor<2> at(layout.shape,
                        {layout.strides.data(), layout.out_strides.data()}, b);
    for (int64_t i = b; i < e; ++i, at.Next()) {
      row(static_cast<KernelContext&>(thread), at[0], at[1], own);
    }
  });
  return absl::OkStatus();
}

template <typename T, typename Item>
struct EncodeItemsBody {
  static HOLDFAST_INLINE int Run(const T* p, int64_t stride, int64_t begin,
                                 int64_t end, uint64_t flip, Item* items) {
    using K = SortKey<T>;
    const K mask = static_cast<K>(flip);
    if (stride == 1) {
      for (int64_t i = begin; i < end; ++i) {
        items[i] = Item::Make(EncodeKey(p + i) ^ mask, i);
      }
    } else {
      for (int64_t i = begin; i < end; ++i) {
        items[i] = Item::Make(EncodeKey(p + i * stride) ^ mask, i);
      }
    }
    return 0;
  }
};

// The items of a row, on the context's threads. flip: 0, or all ones for
// descending order. False if the kernel is to stop: items are then any.
template <typename T, typename Item>
bool EncodeItems(const KernelContext& context, const T* p, int64_t stride,
                 int64_t n, uint64_t flip, Item* items) {
  const auto encode = [&](int64_t b, int64_t e) {
    Vectorised<EncodeItemsBody<T, Item>>(p, stride, b, e, flip, items);
  };
  if (n < 16) {
    EncodeItemsBody<T, Item>::Run(p, stride, 0, n, flip, items);
    return true;
  }
  ParallelFor(context, n, 16384, encode);
  return !context.Stopped();
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_SORT_ROWS_H_
