// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// StridedCursor: walks the index tuples of a shape in row-major order and keeps
// N element offsets, one per list of strides.
// Thread-safety: none; a value for one loop.
#ifndef HOLDFAST_KERNELS_CPU_STRIDED_CURSOR_H_
#define HOLDFAST_KERNELS_CPU_STRIDED_CURSOR_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "ops/tensor_spec.h"

namespace holdfast::cpu {

template <int N>
class StridedCursor {
 public:
  // Starts at the `begin`-th tuple. `shape` and the strides must outlive it;
  // no size is 0.
  StridedCursor(absl::Span<const int64_t> shape,
                const std::array<const int64_t*, N>& strides, int64_t begin = 0)
      : shape_(shape), strides_(strides), index_(shape.size(), 0) {
    for (int d = static_cast<int>(shape.size()) - 1; d >= 0 && begin > 0; --d) {
      index_[d] = begin % shape[d];
      begin /= shape[d];
      for (int i = 0; i < N; ++i) offset_[i] += index_[d] * strides[i][d];
    }
  }

  int64_t operator[](int i) const { return offset_[i]; }
  int64_t index(int d) const { return index_[d]; }

  void Next() {
    for (int d = static_cast<int>(shape_.size()) - 1; d >= 0; --d) {
      if (++index_[d] < shape_[d]) {
        for (int i = 0; i < N; ++i) offset_[i] += strides_[i][d];
        return;
      }
      index_[d] = 0;
      for (int i = 0; i < N; ++i) {
        offset_[i] -= (shape_[d] - 1) * strides_[i][d];
      }
    }
  }

 private:
  absl::Span<const int64_t> shape_;
  std::array<const int64_t*, N> strides_;
  Dims index_;
  std::array<int64_t, N> offset_ = {};
};

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_STRIDED_CURSOR_H_
