// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Offsets: from a position in a row-major walk over a shape to the places of
// that element in N tensors of any strides. Broadcasting is a stride of 0.
// Thread-safety: plain values, pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_OFFSETS_H_
#define HOLDFAST_KERNELS_CUDA_OFFSETS_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/types/span.h"
#include "kernels/cuda/fast_divisor.h"
#include "ops/host_device.h"
#include "ops/tensor_spec.h"

namespace holdfast::cuda {

// Dimensions that an Offsets has room for: a kernel's arguments, which these
// are, have at most 4 KiB. More than so many that do not merge have more
// elements than a GPU's memory.
inline constexpr int kOffsetsRank = 32;

// Whether walks over `spec`, or some of its dimensions, fit an Offsets.
inline bool FitsOffsets(const TensorSpec& spec) {
  return spec.rank() <= kOffsetsRank ||
         std::count_if(spec.shape.begin(), spec.shape.end(),
                       [](int64_t size) { return size != 1; }) <= kOffsetsRank;
}

// REQUIRES, of the shapes it is made for: FitsOffsets, which RunCudaOp checks.
template <int N>
struct Offsets {
  int rank = 0;
  bool narrow = true;  // positions fit 31 bits
  int64_t numel = 1;
  int64_t sizes[kOffsetsRank];
  int64_t strides[N][kOffsetsRank];
  // Of the sizes as FastDivisor or, unless narrow, WideDivisor.
  uint64_t factors[kOffsetsRank];
  int8_t shifts[kOffsetsRank];

  template <typename Word>
  HOLDFAST_HD FastDivisorOf<Word> Divisor(int d) const {
    return {static_cast<Word>(sizes[d]), static_cast<Word>(factors[d]),
            shifts[d]};
  }
  // REQUIRES: positions fit Word without its highest bit.
  template <typename Word>
  void SetDivisors() {
    narrow = sizeof(Word) == 4;
    for (int d = 0; d < rank && numel > 0; ++d) {
      const FastDivisorOf<Word> by(static_cast<Word>(sizes[d]));
      factors[d] = by.factor();
      shifts[d] = static_cast<int8_t>(by.shift());
    }
  }

  template <typename Word>
  HOLDFAST_HD void AtBy(int64_t position, int64_t* out) const {
    for (int k = 0; k < N; ++k) out[k] = 0;
    Word rest = static_cast<Word>(position);
    for (int d = rank - 1; d > 0; --d) {
      const auto parts = Divisor<Word>(d).Split(rest);
      for (int k = 0; k < N; ++k) {
        out[k] += static_cast<int64_t>(parts.rest) * strides[k][d];
      }
      rest = parts.quotient;
    }
    for (int k = 0; k < N && rank > 0; ++k) {
      out[k] += static_cast<int64_t>(rest) * strides[k][0];
    }
  }
  // REQUIRES: narrow.
  HOLDFAST_HD void AtNarrow(int64_t position, int64_t* out) const {
    AtBy<uint32_t>(position, out);
  }
  HOLDFAST_HD void At(int64_t position, int64_t* out) const {
    narrow ? AtBy<uint32_t>(position, out) : AtBy<uint64_t>(position, out);
  }

  // Every tensor is walked in steps of 1, so that At(i) is i.
  bool linear() const {
    if (rank > 1) return false;
    for (int k = 0; k < N && rank == 1; ++k) {
      if (strides[k][0] != 1) return false;
    }
    return true;
  }
};

// `strides`: N lists of the length of `shape`. Dimensions of size 1 go, and
// neighbours that all tensors walk as one are merged.
template <int N>
Offsets<N> MakeOffsets(absl::Span<const int64_t> shape,
                       const absl::Span<const int64_t> (&strides)[N]) {
  Offsets<N> o;
  for (size_t d = 0; d < shape.size(); ++d) {
    o.numel *= shape[d];
    if (shape[d] == 1) continue;
    bool merges = o.rank > 0;
    for (int k = 0; k < N && merges; ++k) {
      merges = o.strides[k][o.rank - 1] == strides[k][d] * shape[d];
    }
    if (merges) {
      o.sizes[o.rank - 1] *= shape[d];
    } else {
      o.sizes[o.rank++] = shape[d];
    }
    for (int k = 0; k < N; ++k) o.strides[k][o.rank - 1] = strides[k][d];
  }
  if (o.numel <= std::numeric_limits<int32_t>::max()) {
    o.template SetDivisors<uint32_t>();
  } else {
    o.template SetDivisors<uint64_t>();
  }
  return o;
}

// Strides with which `spec` is walked in `shape`, to which it broadcasts.
inline Dims BroadcastStrides(const TensorSpec& spec,
                             absl::Span<const int64_t> shape) {
  Dims strides(shape.size(), 0);
  const int missing = static_cast<int>(shape.size()) - spec.rank();
  for (int d = 0; d < spec.rank(); ++d) {
    if (spec.shape[d] != 1) strides[missing + d] = spec.strides[d];
  }
  return strides;
}

// The walk over the first tensor's shape, to which the others broadcast.
template <int N>
Offsets<N> BroadcastOffsets(const TensorSpec* const (&specs)[N]) {
  Dims strides[N];
  for (int k = 0; k < N; ++k) {
    strides[k] = BroadcastStrides(*specs[k], specs[0]->shape);
  }
  absl::Span<const int64_t> spans[N];
  for (int k = 0; k < N; ++k) spans[k] = strides[k];
  return MakeOffsets<N>(specs[0]->shape, spans);
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_OFFSETS_H_
