// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Counting integers into bins on several threads.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CPU_COUNT_BINS_H_
#define HOLDFAST_KERNELS_CPU_COUNT_BINS_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cpu/load_once.h"
#include "kernels/cpu/parallel.h"
#include "kernels/kernel.h"

namespace holdfast::cpu {

// Parts of n elements that are counted apart: from the sizes alone, so that
// sums of weights come out equal for every number of threads.
inline int64_t CountParts(int64_t n, int64_t bins) {
  return std::clamp<int64_t>(std::min(n / 32768, (int64_t{1} << 22) / bins), 1,
                             16);
}

// counts[j] = what add(count, i) makes of 0 for all i with values[i] == low +
// j; values outside the bins (they may have changed since their limits were
// taken) count nowhere.
template <typename Acc, typename I, typename Add>
absl::Status CountBins(KernelContext& context, const I* values, int64_t n,
                       int64_t low, int64_t bins, Acc* counts, const Add& add) {
  constexpr int64_t kLook = int64_t{1} << 18;
  const int64_t parts = CountParts(n, bins);
  Acc* all = counts;
  if (parts > 1) {
    all = static_cast<Acc*>(context.Scratch(parts * bins * sizeof(Acc)));
    if (all == nullptr) {
      return absl::ResourceExhaustedError("scratch memory for counting");
    }
  }
  ParallelFor(context, parts, 1, [&](int64_t b, int64_t e) {
    for (int64_t part = b; part < e; ++part) {
      Acc* own = all + part * bins;
      std::fill(own, own + bins, Acc{0});
      const int64_t first = n * part / parts;
      const int64_t size = n * (part + 1) / parts - first;
      SerialFor(context, size, kLook, [&](int64_t from, int64_t to) {
        for (int64_t i = first + from; i < first + to; ++i) {
          const auto bin = static_cast<uint64_t>(LoadOnce(values + i)) -
                           static_cast<uint64_t>(low);
          if (bin < static_cast<uint64_t>(bins)) add(own[bin], i);
        }
      });
    }
  });
  if (parts == 1) return absl::OkStatus();
  for (int64_t i = 0; i < bins; ++i) {
    Acc total = 0;
    for (int64_t part = 0; part < parts; ++part) total += all[part * bins + i];
    counts[i] = total;
  }
  return absl::OkStatus();
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_COUNT_BINS_H_
