// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Read-modify-write of elements that several threads may reach. On the host,
// where a loop has one thread, plain.
// Thread-safety: that is what they are for.
#ifndef HOLDFAST_KERNELS_CUDA_ATOMICS_H_
#define HOLDFAST_KERNELS_CUDA_ATOMICS_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/elementwise.h"
#include "ops/host_device.h"

namespace holdfast::cuda {

HOLDFAST_HD void AtomicMin(uint64_t* to, uint64_t value) {
#if defined(__CUDA_ARCH__)
  atomicMin(reinterpret_cast<unsigned long long*>(to),  // NOLINT: CUDA's type
            static_cast<unsigned long long>(value));    // NOLINT
#else
  if (value < *to) *to = value;
#endif
}

// *to = combine(*to, value), for types of 1, 4, 8 and 16 bytes; the parts of a
// 16-byte one one after the other, which only sums allow.
template <typename T, typename Combine>
HOLDFAST_HD void AtomicUpdate(T* to, T value, Combine combine) {
#if defined(__CUDA_ARCH__)
  if constexpr (kIsComplex<T>) {
    AtomicUpdate(&to->real, value.real, combine);
    AtomicUpdate(&to->imag, value.imag, combine);
  } else if constexpr (sizeof(T) == 1) {
    // The word around it.
    const uintptr_t address = reinterpret_cast<uintptr_t>(to);
    auto* word = reinterpret_cast<unsigned int*>(address & ~uintptr_t{3});
    const int shift = static_cast<int>(address & 3) * 8;
    unsigned int seen = *word, assumed;
    do {
      assumed = seen;
      const auto byte = static_cast<unsigned char>(assumed >> shift);
      const T old = static_cast<T>(byte);
      const auto fresh = static_cast<unsigned char>(combine(old, value));
      const unsigned int next = (assumed & ~(0xffu << shift)) |
                                (static_cast<unsigned int>(fresh) << shift);
      seen = atomicCAS(word, assumed, next);
    } while (seen != assumed);
  } else {
    using Word = std::conditional_t<sizeof(T) == 4, unsigned int,
                                    unsigned long long>;  // NOLINT
    static_assert(sizeof(T) == sizeof(Word));
    auto* word = reinterpret_cast<Word*>(to);
    Word seen = *word, assumed;
    do {
      assumed = seen;
      T old;
      memcpy(&old, &assumed, sizeof(T));
      const T fresh = combine(old, value);
      Word next;
      memcpy(&next, &fresh, sizeof(T));
      seen = atomicCAS(word, assumed, next);
    } while (seen != assumed);
  }
#else
  *to = combine(*to, value);
#endif
}

struct AddTwo {
  template <typename T>
  HOLDFAST_HD T operator()(T a, T b) const {
    if constexpr (kIsComplex<T>) {
      return a + b;
    } else {
      return elementwise::Add(a, b);
    }
  }
};

template <typename T>
HOLDFAST_HD void AtomicAdd(T* to, T value) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    atomicAdd(to, value);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    using Word = unsigned long long;  // NOLINT: CUDA's type; wraps the same
    atomicAdd(reinterpret_cast<Word*>(to), static_cast<Word>(value));
  } else {
    AtomicUpdate(to, value, AddTwo());
  }
#else
  AtomicUpdate(to, value, AddTwo());
#endif
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_ATOMICS_H_
