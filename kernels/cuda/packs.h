// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packs: a few adjacent elements that one instruction loads or stores, computed
// with in the type of the computation.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_PACKS_H_
#define HOLDFAST_KERNELS_CUDA_PACKS_H_

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "kernels/element_convert.h"
#include "ops/host_device.h"

#if defined(__CUDA_ARCH__)
#define HOLDFAST_UNROLL _Pragma("unroll")
#else
#define HOLDFAST_UNROLL
#endif

namespace holdfast {

inline constexpr int kPackBytes = 16;  // the most that an instruction moves

// Elements of S in a full pack.
template <typename S>
inline constexpr int kPackWidth = kPackBytes / static_cast<int>(sizeof(S));

// Whether packs of `width` elements may begin where rows of `row` adjacent
// elements do: at each of `pointers` (null: not there) and all rows after it.
template <typename S>
inline bool PacksFit(int width, int64_t row,
                     std::initializer_list<const void*> pointers) {
  const uint64_t bytes = static_cast<uint64_t>(width) * sizeof(S);
  const uint64_t align = bytes < kPackBytes ? bytes : kPackBytes;
  if (row % width != 0) return false;
  for (const void* pointer : pointers) {
    if (reinterpret_cast<uintptr_t>(pointer) % align != 0) return false;
  }
  return true;
}

// `bytes` of 16-byte words, or of one smaller one.
template <int kBytes>
HOLDFAST_HD void MoveWords(void* to, const void* from) {
  static_assert(kBytes % 16 == 0 || kBytes == 8 || kBytes == 4 || kBytes == 2);
#if defined(__CUDA_ARCH__)
  if constexpr (kBytes % 16 == 0) {
    HOLDFAST_UNROLL
    for (int i = 0; i < kBytes / 16; ++i) {
      static_cast<uint4*>(to)[i] = static_cast<const uint4*>(from)[i];
    }
  } else if constexpr (kBytes == 8) {
    *static_cast<uint2*>(to) = *static_cast<const uint2*>(from);
  } else if constexpr (kBytes == 4) {
    *static_cast<uint32_t*>(to) = *static_cast<const uint32_t*>(from);
  } else {
    *static_cast<uint16_t*>(to) = *static_cast<const uint16_t*>(from);
  }
#else
  std::memcpy(to, from, kBytes);
#endif
}

// values = kWidth elements from `from` on. REQUIRES: PacksFit there.
template <int kWidth, typename S, typename T>
HOLDFAST_HD void LoadPack(const S* from, T* values) {
  alignas(16) S pack[kWidth];
  MoveWords<kWidth* static_cast<int>(sizeof(S))>(pack, from);
  HOLDFAST_UNROLL
  for (int i = 0; i < kWidth; ++i) values[i] = Convert<T>(pack[i]);
}

template <int kWidth, typename S, typename T>
HOLDFAST_HD void StorePack(S* to, const T* values) {
  alignas(16) S pack[kWidth];
  HOLDFAST_UNROLL
  for (int i = 0; i < kWidth; ++i) pack[i] = Convert<S>(values[i]);
  MoveWords<kWidth* static_cast<int>(sizeof(S))>(to, pack);
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_PACKS_H_
