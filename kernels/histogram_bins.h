// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which bin of a histogram a number falls into. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_HISTOGRAM_BINS_H_
#define HOLDFAST_KERNELS_HISTOGRAM_BINS_H_

#include <cstdint>

#include "ops/host_device.h"

namespace holdfast {

// Bins [edge[i], edge[i + 1]), the last one closed. `edges` is memory that no
// client writes, so that every answer is in range.
template <typename T>
class HistogramBins {
 public:
  // `uniform`: the edges are evenly spaced.
  HOLDFAST_HD HistogramBins(const T* edges, int64_t bins, bool uniform)
      : edges_(edges),
        bins_(bins),
        uniform_(uniform),
        low_(edges[0]),
        high_(edges[bins]),
        scale_(static_cast<T>(bins) / (high_ - low_)) {}

  // The bin of x; -1 outside, and for NaN.
  HOLDFAST_HD int64_t Find(T x) const {
    if (!(x >= low_ && x <= high_)) return -1;
    return uniform_ ? Guess(x) : Search(x);
  }

 private:
  HOLDFAST_HD int64_t Guess(T x) const {
    const T guess = (x - low_) * scale_;
    int64_t bin = guess > 0 && guess < static_cast<T>(bins_)
                      ? static_cast<int64_t>(guess)
                      : (guess > 0 ? bins_ - 1 : 0);
    // Rounding can miss by one.
    if (x < edges_[bin] && bin > 0) --bin;
    if (bin < bins_ - 1 && x >= edges_[bin + 1]) ++bin;
    return bin;
  }
  // The last bin whose lower edge is not above x.
  HOLDFAST_HD int64_t Search(T x) const {
    int64_t first = 0, n = bins_ - 1;  // among edges 1 .. bins - 1
    while (n > 0) {
      const int64_t half = n / 2;
      const bool above = edges_[first + half + 1] > x;
      first = above ? first : first + half + 1;
      n = above ? half : n - half - 1;
    }
    return first;
  }

  const T* edges_;
  int64_t bins_;
  bool uniform_;
  T low_, high_, scale_;
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_HISTOGRAM_BINS_H_
