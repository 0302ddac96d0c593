// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// How optimizer steps walk all parameters at once: the elements of all of them
// are split over the threads as one range, and visited in blocks.
// Thread-safety: blocks of one step run on several threads; each sees its own
// elements.
#ifndef HOLDFAST_KERNELS_CPU_OPTIM_BLOCKS_H_
#define HOLDFAST_KERNELS_CPU_OPTIM_BLOCKS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/kernel.h"

namespace holdfast::cpu {

// Calls block(views, walk, begin, n) for blocks of at most kBlock elements of
// every parameter; `views` are the parameter's entry of each list.
template <int kLists, typename Block>
void ForEachParameterBlock(const KernelContext& context,
                           absl::Span<const TensorView> inputs, int num_lists,
                           Block block) {
  const size_t count = inputs.size() / num_lists;
  int64_t total = 0;
  for (size_t i = 0; i < count; ++i) total += inputs[i].spec->numel();
  ParallelFor(
      context, total, kElementwiseGrain, [&](int64_t begin, int64_t end) {
        int64_t offset = 0;
        for (size_t i = 0; i < count && offset < end; ++i) {
          const int64_t numel = inputs[i].spec->numel();
          const int64_t from = std::max(begin - offset, int64_t{0});
          const int64_t to = std::min(end - offset, numel);
          offset += numel;
          if (from >= to) continue;
          TensorView views[kLists];
          for (int l = 0; l < kLists; ++l) {
            views[l] = inputs[l * count + i];
          }
          const StridedLoop walk(views);
          for (int64_t at = from; at < to; at += kBlock) {
            block(walk, views[0].spec->dtype, at, std::min(kBlock, to - at));
          }
        }
      });
}

// A block of operand k that is read and written.
template <typename T>
struct Updated {
  Updated(const StridedLoop& walk, int k, int64_t begin, int64_t n)
      : walk(walk), k(k), begin(begin), n(n) {
    data = static_cast<T*>(walk.Target(k, kDTypeOf<T>, begin, &buffer));
    if (static_cast<void*>(data) == buffer.bytes) {
      walk.LoadInto(k, kDTypeOf<T>, begin, n, data);
    }
  }
  void Store() { walk.Store(k, kDTypeOf<T>, begin, n, data); }

  const StridedLoop& walk;
  int k;
  int64_t begin, n;
  T* data;
  BlockBuffer buffer;
};

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_OPTIM_BLOCKS_H_
