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

#include "kernels/cuda/elements.h"
#include "kernels/element_convert.h"
#include "ops/host_device.h"

#if defined(__CUDA_ARCH__)
#define HOLDFAST_UNROLL _Pragma("unroll")
#else
#define HOLDFAST_UNROLL
#endif

namespace holdfast::cuda {

inline constexpr int kPackBytes = 16;  // the most that an instruction moves

// Elements of S in a full pack.
template <typename S>
inline constexpr int kPackWidth = kPackBytes / static_cast<int>(sizeof(S));

// Whether a full pack may begin there.
HOLDFAST_HD bool Aligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % kPackBytes == 0;
}

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

#if defined(__CUDA_ARCH__)
// An unsigned type of a pack's size, up to 16 bytes.
template <int kBytes>
struct PackWord {
  static_assert(kBytes == 16, "a pack has 1, 2, 4, 8 or 16 bytes");
  using type = uint4;
};
template <>
struct PackWord<8> {
  using type = uint2;
};
template <>
struct PackWord<4> {
  using type = uint32_t;
};
template <>
struct PackWord<2> {
  using type = uint16_t;
};
template <>
struct PackWord<1> {
  using type = uint8_t;
};
#endif

// to[] = the kBytes from `from` on, by the widest words.
template <int kBytes>
HOLDFAST_HD void LoadWords(void* to, const void* from) {
#if defined(__CUDA_ARCH__)
  using Word = typename PackWord<(kBytes < 16 ? kBytes : 16)>::type;
  constexpr int kWords = kBytes / static_cast<int>(sizeof(Word));
  Word words[kWords];
  HOLDFAST_UNROLL
  for (int i = 0; i < kWords; ++i) words[i] = static_cast<const Word*>(from)[i];
  memcpy(to, words, kBytes);
#else
  std::memcpy(to, from, kBytes);
#endif
}

// The compiler makes four stores of a uint4's where it knows too much about
// them, but for this instruction.
template <int kBytes>
HOLDFAST_HD void StoreWords(void* to, const void* from) {
#if defined(__CUDA_ARCH__)
  using Word = typename PackWord<(kBytes < 16 ? kBytes : 16)>::type;
  constexpr int kWords = kBytes / static_cast<int>(sizeof(Word));
  Word words[kWords];
  memcpy(words, from, kBytes);
  HOLDFAST_UNROLL
  for (int i = 0; i < kWords; ++i) __stcg(static_cast<Word*>(to) + i, words[i]);
#else
  std::memcpy(to, from, kBytes);
#endif
}

// values = kWidth elements from `from` on. REQUIRES: PacksFit there.
template <int kWidth, typename S, typename T>
HOLDFAST_HD void LoadPack(const S* from, T* values) {
  S pack[kWidth];
  LoadWords<kWidth* static_cast<int>(sizeof(S))>(pack, from);
  HOLDFAST_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    values[i] = Convert<T>(LoadStored<S>(pack, i));
  }
}

template <int kWidth, typename S, typename T>
HOLDFAST_HD void StorePack(S* to, const T* values) {
  S pack[kWidth];
  HOLDFAST_UNROLL
  for (int i = 0; i < kWidth; ++i) pack[i] = Convert<S>(values[i]);
  StoreWords<kWidth* static_cast<int>(sizeof(S))>(to, pack);
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_PACKS_H_
