// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The loop structure of ops that address a tensor through a tensor of indices
// along one dimension: gather, scatter, index_select, index_add. Each visits
// the elements of one shape and pairs an index with an element of `data` (the
// dimension `dim` replaced by the index) and an element of `other`.
// Thread-safety: IndexLoops is a plain value; ForEachIndexRow is reentrant.
#ifndef HOLDFAST_KERNELS_CPU_INDEX_LOOPS_H_
#define HOLDFAST_KERNELS_CPU_INDEX_LOOPS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_cursor.h"
#include "kernels/kernel.h"
#include "ops/tensor_spec.h"

namespace holdfast::cpu {

struct IndexLoops {
  Dims shape;               // never empty: one element becomes [1]
  Dims data, index, other;  // strides; data[dim] is 0
  int dim = -1;             // -1: of size 1, and left out
  int64_t data_stride = 0;  // of `data` along dim
  int64_t data_size = 0;    // indices are below this

  int inner() const { return static_cast<int>(shape.size()) - 1; }
};

// Loops over `shape`. `index` and `other` hold strides for it, `data` is the
// indexed tensor. Dimensions that step through all three as one are merged,
// those of size 1 left out: an inner loop of one element is all overhead.
IndexLoops MakeIndexLoops(absl::Span<const int64_t> shape, int dim,
                          const TensorSpec& data,
                          absl::Span<const int64_t> index,
                          absl::Span<const int64_t> other);

// The first index out of range that any thread met.
class FirstBadIndex {
 public:
  void Record(int64_t index) {
    if (!seen_.exchange(true)) value_ = index;
  }
  bool seen() const { return seen_.load(std::memory_order_relaxed); }
  // REQUIRES: seen(), and the threads that record have joined.
  int64_t value() const { return value_; }
  // "[gather] index 7 is out of bounds for dimension 0 with size 5."
  absl::Status ToStatus(const Attrs& attrs, int dim, int64_t size) const;

 private:
  std::atomic<bool> seen_{false};
  int64_t value_ = 0;  // read after the threads have joined
};

// Calls row(data, index, other, n): element offsets of n elements that follow
// each other in the last dimension. With `ordered`, elements that an index can
// send to one place stay on one thread, in order.
template <typename Row>
void ForEachIndexRow(const KernelContext& context, IndexLoops loops,
                     bool ordered, Row&& row) {
  const int inner = loops.inner();
  const int64_t n = loops.shape[inner];
  constexpr int64_t kGrain = 8192;
  // The part of the outer loops [begin, end) and of the inner [first, last).
  const auto walk = [&](int64_t begin, int64_t end, int64_t first,
                        int64_t last) {
    StridedCursor<3> at(
        absl::MakeSpan(loops.shape).subspan(0, inner),
        {loops.data.data(), loops.index.data(), loops.other.data()}, begin);
    // A row may be all there is, of an index without memory of its own.
    constexpr int64_t kLook = 1 << 20;
    int64_t since = 0;
    for (int64_t i = begin; i < end; ++i, at.Next()) {
      for (int64_t j = first, m; j < last; j += m) {
        m = std::min(last - j, kLook);
        if ((since += m) >= kLook) {
          if (context.Stopped()) return;
          since = 0;
        }
        row(at[0] + j * loops.data[inner], at[1] + j * loops.index[inner],
            at[2] + j * loops.other[inner], m);
      }
    }
  };
  const int64_t outer = NumElements(loops.shape) / n;
  int split = -1;
  for (int d = 0; d <= inner; ++d) {
    if (ordered && d == loops.dim) continue;
    if (split < 0 || loops.shape[d] > loops.shape[split]) split = d;
  }
  if (!ordered && outer >= 2 * context.num_threads) {
    ParallelFor(context, outer, std::max<int64_t>(1, kGrain / n),
                [&](int64_t b, int64_t e) { walk(b, e, 0, n); });
  } else if (split < 0) {
    walk(0, outer, 0, n);
  } else if (split == inner) {
    ParallelFor(context, n, std::max<int64_t>(1, kGrain / outer),
                [&](int64_t b, int64_t e) { walk(0, outer, b, e); });
  } else {
    for (Dims* list : {&loops.shape, &loops.data, &loops.index, &loops.other}) {
      std::rotate(list->begin(), list->begin() + split,
                  list->begin() + split + 1);
    }
    const int64_t per = outer / loops.shape[0];
    ParallelFor(context, loops.shape[0],
                std::max<int64_t>(1, kGrain / (per * n)),
                [&](int64_t b, int64_t e) { walk(b * per, e * per, 0, n); });
  }
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_INDEX_LOOPS_H_
