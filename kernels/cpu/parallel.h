// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ParallelFor: splits one kernel's index range over the threads that its
// context grants.
// Thread-safety: reentrant; the callback runs on several threads at once.
#ifndef HOLDFAST_KERNELS_CPU_PARALLEL_H_
#define HOLDFAST_KERNELS_CPU_PARALLEL_H_

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "kernels/kernel.h"

namespace holdfast::cpu {

// Calls fn(begin, end) for disjoint ranges that cover [0, n), inline when n is
// at most `grain` or one thread is granted. A range starts at a multiple of
// `align`, so that a loop that treats the elements after the last full vector
// differently does so at the same places for every thread count.
template <typename F>
inline void ParallelFor(const KernelContext& context, int64_t n, int64_t grain,
                        F&& fn, int64_t align = 1) {
  if (n <= 0) return;
#if !defined(__SANITIZE_THREAD__)
  // Not under ThreadSanitizer: libgomp is not instrumented, so that its
  // barriers are invisible and every loop would be reported as a race.
  if (n > grain && context.num_threads > 1) {
    const int64_t pieces =
        std::min<int64_t>(context.num_threads, (n + grain - 1) / grain);
#pragma omp parallel num_threads(static_cast <int>(pieces))
    {
      // The runtime may give fewer threads than asked for.
      const int64_t count = omp_get_num_threads();
      const int64_t chunk =
          ((n + count - 1) / count + align - 1) / align * align;
      const int64_t begin = omp_get_thread_num() * chunk;
      if (begin < n) fn(begin, std::min(n, begin + chunk));
    }
    return;
  }
#endif
  (void)context, (void)grain, (void)align;
  fn(int64_t{0}, n);
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_PARALLEL_H_
