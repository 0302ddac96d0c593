// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of group_norm: what they are, and the weights along them.
// Thread-safety: plain values, pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_NORM_ROWS_H_
#define HOLDFAST_KERNELS_CUDA_NORM_ROWS_H_

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "absl/status/status.h"
#include "kernels/cuda/held_row.h"
#include "kernels/cuda/index_division.h"
#include "kernels/cuda/packs.h"
#include "ops/attrs.h"
#include "ops/tensor_spec.h"

namespace holdfast::cuda {

// rows of `channels` channels of `inner` adjacent elements; layer normalisation
// is the case of inner == 1 and one group.
struct GroupLayout {
  int64_t rows = 1, groups = 1, channels = 1, inner = 1;
  int64_t row() const { return channels * inner; }
  int64_t all() const { return groups * channels; }
  int64_t numel() const { return rows * row(); }
};

inline GroupLayout GroupLayoutOf(const Attrs& attrs, const TensorSpec& input) {
  GroupLayout l;
  const int rank = input.rank();
  const int dims = static_cast<int>(attrs.Int("normalized_dims"));
  if (dims > 0) {
    for (int d = 0; d < rank; ++d) {
      (d < rank - dims ? l.rows : l.channels) *= input.shape[d];
    }
    return l;
  }
  l.groups = attrs.Int("groups");
  l.rows = input.shape[0] * l.groups;
  l.channels = input.shape[1] / l.groups;
  for (int d = 2; d < rank; ++d) l.inner *= input.shape[d];
  return l;
}

// Weights or biases of a row's elements: adjacent ones of a pack where inner is
// 1 (kAlong), else one for the pack.
template <typename S, typename Index, bool kAlong>
class RowFactors {
 public:
  using T = ComputeOf<S>;

  explicit RowFactors(const GroupLayout& l)
      : groups_(l.groups),
        channels_(l.channels),
        narrow_(l.rows <= std::numeric_limits<int32_t>::max()),
        by_groups_(l.groups),
        by_inner_(l.inner) {}

  // Of a row's first element.
  HOLDFAST_HD int64_t Channel(int64_t row) const {
    if (groups_ == 1) return 0;
    if (!narrow_) return row % groups_ * channels_;
    return by_groups_.Split(static_cast<uint32_t>(row)).rest * channels_;
  }
  // Of elements i .. i + kWidth - 1 of the row that begins at `channel`.
  template <int kWidth>
  HOLDFAST_HD void Load(const S* table, T absent, int64_t channel, Index i,
                        T (&factors)[kWidth]) const {
    T one = absent;
    if (table != nullptr) {
      if (kAlong) {
        LoadPack<kWidth>(table + channel + i, factors);
        return;
      }
      one = Convert<T>(table[channel + by_inner_.Divide(i)]);
    }
    HOLDFAST_UNROLL
    for (int e = 0; e < kWidth; ++e) factors[e] = one;
  }

 private:
  int64_t groups_, channels_;
  bool narrow_;  // rows fit 31 bits
  Division<uint32_t> by_groups_;
  Division<Index> by_inner_;
};

// run(width, whether inner is 1) as constants, for packs of that width.
template <typename S, typename Run>
absl::Status DispatchRows(const GroupLayout& l, bool fits, Run run) {
  using Full = std::integral_constant<int, kPackWidth<S>>;
  using One = std::integral_constant<int, 1>;
  if (l.inner == 1) {
    return fits ? run(Full(), std::true_type()) : run(One(), std::true_type());
  }
  return fits ? run(Full(), std::false_type()) : run(One(), std::false_type());
}

// Whether full packs fit the rows of `tensors` and what lies along them.
template <typename S>
bool RowPacksFit(const GroupLayout& l,
                 std::initializer_list<const void*> tensors,
                 std::initializer_list<const void*> factors) {
  return PacksFit<S>(kPackWidth<S>, l.inner == 1 ? l.channels : l.inner,
                     tensors) &&
         (l.inner != 1 || PacksFit<S>(kPackWidth<S>, l.channels, factors));
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_NORM_ROWS_H_
