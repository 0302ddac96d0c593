// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Blocks of random words and numbers for the CPU kernels, vectorised. The map
// from position to number is kernels/philox.h's.
// Thread-safety: pure functions over caller-owned memory.
#ifndef HOLDFAST_KERNELS_CPU_RANDOM_H_
#define HOLDFAST_KERNELS_CPU_RANDOM_H_

#include <cstdint>

#include "kernels/cpu/strided_loop.h"
#include "kernels/kernel.h"

namespace holdfast::cpu {

// Words of a block of kBlock elements, up to two each.
struct alignas(64) RandomWords {
  uint32_t w[kBlock * 2];
};

// The first `count` words of the counters from `position` on. May write up to
// the next multiple of 64. REQUIRES: count <= kBlock * 2.
void GenerateWords(uint64_t seed, uint64_t position, int64_t count,
                   RandomWords* words);

// Elements `begin` .. begin + n - 1 of an op's stream.
// REQUIRES: begin is a multiple of kBlock, n <= kBlock; `out` has room for
// kBlock elements.
void UniformBlock(const PhiloxState& philox, int64_t begin, int64_t n,
                  float* out);
void UniformBlock(const PhiloxState& philox, int64_t begin, int64_t n,
                  double* out);
void NormalBlock(const PhiloxState& philox, int64_t begin, int64_t n,
                 float* out);
void NormalBlock(const PhiloxState& philox, int64_t begin, int64_t n,
                 double* out);
void IntegerBlock(const PhiloxState& philox, int64_t begin, int64_t n,
                  uint64_t range, uint64_t* out);

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_RANDOM_H_
