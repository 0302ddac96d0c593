// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011) and the map from its words to numbers, for every device: what
// element i of an op is depends on the session's seed, the op's offset and i
// alone. An op over n elements owns counters offset .. offset + n - 1; one
// counter gives four 32-bit words:
//
//   float32 uniform, bernoulli, dropout  word i % 4 of counter offset + i / 4
//   float64 uniform, randint, randperm   words 2 * (i % 2) and the next one of
//                                        counter offset + i / 2, the first low
//   float32 normal   elements 2j and 2j + 1 are the two of Box-Muller from
//                    words 2 * (j % 2) and the next of counter offset + j / 2
//   float64 normal   elements 2j and 2j + 1 are the two of Box-Muller from
//                    words 0, 1 and words 2, 3 of counter offset + j
//   poisson          all words of counter offset + i, the upper half of which
//                    counts 0, 1, ... (kernels/poisson.h)
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_PHILOX_H_
#define HOLDFAST_KERNELS_PHILOX_H_

#include <cstdint>

#include "kernels/elementwise.h"

namespace holdfast {

struct PhiloxWords {
  uint32_t w[4];
};

inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53u;
inline constexpr uint32_t kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr uint32_t kPhiloxKeyStep0 = 0x9E3779B9u;  // golden ratio
inline constexpr uint32_t kPhiloxKeyStep1 = 0xBB67AE85u;  // sqrt(3) - 1
inline constexpr int kPhiloxRounds = 10;

HOLDFAST_HD void PhiloxRound(uint32_t key0, uint32_t key1, uint32_t* w0,
                             uint32_t* w1, uint32_t* w2, uint32_t* w3) {
  const uint64_t p0 = static_cast<uint64_t>(kPhiloxMultiplier0) * *w0;
  const uint64_t p1 = static_cast<uint64_t>(kPhiloxMultiplier1) * *w2;
  *w0 = static_cast<uint32_t>(p1 >> 32) ^ *w1 ^ key0;
  *w1 = static_cast<uint32_t>(p1);
  *w2 = static_cast<uint32_t>(p0 >> 32) ^ *w3 ^ key1;
  *w3 = static_cast<uint32_t>(p0);
}

// The full generator: 128-bit counter, 64-bit key.
HOLDFAST_HD PhiloxWords Philox4x32(const uint32_t counter[4], uint32_t key0,
                                   uint32_t key1) {
  PhiloxWords x = {{counter[0], counter[1], counter[2], counter[3]}};
  for (int round = 0; round < kPhiloxRounds; ++round) {
    PhiloxRound(key0, key1, &x.w[0], &x.w[1], &x.w[2], &x.w[3]);
    key0 += kPhiloxKeyStep0;
    key1 += kPhiloxKeyStep1;
  }
  return x;
}

// As the ops use it: the seed is the key, the position the low 64 bits of the
// counter.
HOLDFAST_HD PhiloxWords Philox(uint64_t seed, uint64_t position) {
  const uint32_t counter[4] = {static_cast<uint32_t>(position),
                               static_cast<uint32_t>(position >> 32), 0, 0};
  return Philox4x32(counter, static_cast<uint32_t>(seed),
                    static_cast<uint32_t>(seed >> 32));
}

HOLDFAST_HD uint64_t JoinWords(uint32_t low, uint32_t high) {
  return static_cast<uint64_t>(high) << 32 | low;
}

// [0, 1), 24 bits.
HOLDFAST_HD float UniformFloat(uint32_t w) {
  return static_cast<float>(static_cast<int32_t>(w >> 8)) * 0x1p-24f;
}
// [0, 1), 53 bits.
HOLDFAST_HD double UniformDouble(uint64_t w) {
  return static_cast<double>(static_cast<int64_t>(w >> 11)) * 0x1p-53;
}
// (0, 1], for the logarithm of Box-Muller. More bits than UniformFloat, since
// the smallest value decides how far out the normal numbers reach (6.7).
HOLDFAST_HD float PositiveFloat(uint32_t w) {
  return (static_cast<float>(w) + 1.0f) * 0x1p-32f;
}
HOLDFAST_HD double PositiveDouble(uint64_t w) {
  return static_cast<double>(static_cast<int64_t>(w >> 11) + 1) * 0x1p-53;
}

// Uniform in [0, range); range 0 means 2^64. The bias is below range / 2^64.
HOLDFAST_HD uint64_t UniformInteger(uint64_t w, uint64_t range) {
  if (range == 0) return w;
#if defined(__CUDA_ARCH__)
  return __umul64hi(w, range);
#else
  return static_cast<uint64_t>(static_cast<unsigned __int128>(w) * range >> 64);
#endif
}

// A word below this bound keeps the element: 2^32 for p = 0, 0 for p = 1.
HOLDFAST_HD uint64_t DropoutKeepBound(double p) {
  return static_cast<uint64_t>((1.0 - p) * 0x1p32);
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_PHILOX_H_
