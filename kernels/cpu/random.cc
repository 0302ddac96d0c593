// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/random.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cmath>

#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/philox.h"

namespace holdfast::cpu {
namespace {

constexpr int kCounters = 16;  // generated side by side
constexpr int64_t kWordGroup = kCounters * 4;

void PortableWords(uint64_t seed, uint64_t position, int64_t count,
                   uint32_t* out) {
  for (int64_t i = 0; i < (count + 3) / 4; ++i) {
    const PhiloxWords x = Philox(seed, position + i);
    for (int w = 0; w < 4; ++w) out[4 * i + w] = x.w[w];
  }
}

#if defined(__x86_64__)

// By hand, because the compiler finds no use for the one instruction that
// matters: 32 x 32 -> 64 bits per 64-bit lane. A word lives in the low half of
// its lane; the multiplication ignores the high half, so that half may hold
// rubbish until the end.

// GCC 12 warns about the undefined operand inside its own intrinsics.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
__attribute__((target("avx512f"))) void Avx512Words(uint64_t seed,
                                                    uint64_t position,
                                                    int64_t count,
                                                    uint32_t* out) {
  const __m512i m0 = _mm512_set1_epi64(kPhiloxMultiplier0);
  const __m512i m1 = _mm512_set1_epi64(kPhiloxMultiplier1);
  const __m512i low_half = _mm512_set1_epi64(0xffffffff);
  // (w0 w1), (w2 w3) of four counters each -> four words per counter.
  const __m512i first = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0);
  const __m512i second = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
  const __m512i step = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
  for (int64_t done = 0; done < count; done += kWordGroup) {
    __m512i w0[2], w1[2], w2[2], w3[2];
    for (int u = 0; u < 2; ++u) {
      w0[u] = _mm512_add_epi64(_mm512_set1_epi64(position + 8 * u), step);
      w1[u] = _mm512_srli_epi64(w0[u], 32);
      w2[u] = w3[u] = _mm512_setzero_si512();
    }
    uint32_t key0 = static_cast<uint32_t>(seed);
    uint32_t key1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const __m512i k0 = _mm512_set1_epi64(key0), k1 = _mm512_set1_epi64(key1);
      for (int u = 0; u < 2; ++u) {
        const __m512i p0 = _mm512_mul_epu32(w0[u], m0);
        const __m512i p1 = _mm512_mul_epu32(w2[u], m1);
        w0[u] = _mm512_xor_si512(
            _mm512_xor_si512(_mm512_srli_epi64(p1, 32), w1[u]), k0);
        w2[u] = _mm512_xor_si512(
            _mm512_xor_si512(_mm512_srli_epi64(p0, 32), w3[u]), k1);
        w1[u] = p1;
        w3[u] = p0;
      }
      key0 += kPhiloxKeyStep0;
      key1 += kPhiloxKeyStep1;
    }
    for (int u = 0; u < 2; ++u) {
      const __m512i a = _mm512_or_si512(_mm512_and_si512(w0[u], low_half),
                                        _mm512_slli_epi64(w1[u], 32));
      const __m512i b = _mm512_or_si512(_mm512_and_si512(w2[u], low_half),
                                        _mm512_slli_epi64(w3[u], 32));
      _mm512_storeu_si512(out + 32 * u, _mm512_permutex2var_epi64(a, first, b));
      _mm512_storeu_si512(out + 32 * u + 16,
                          _mm512_permutex2var_epi64(a, second, b));
    }
    out += kWordGroup;
    position += kCounters;
  }
}

#pragma GCC diagnostic pop

__attribute__((target("avx2"))) void Avx2Words(uint64_t seed, uint64_t position,
                                               int64_t count, uint32_t* out) {
  const __m256i m0 = _mm256_set1_epi64x(kPhiloxMultiplier0);
  const __m256i m1 = _mm256_set1_epi64x(kPhiloxMultiplier1);
  const __m256i low_half = _mm256_set1_epi64x(0xffffffff);
  const __m256i step = _mm256_set_epi64x(3, 2, 1, 0);
  for (int64_t done = 0; done < count; done += kWordGroup / 2) {
    __m256i w0[2], w1[2], w2[2], w3[2];
    for (int u = 0; u < 2; ++u) {
      w0[u] = _mm256_add_epi64(_mm256_set1_epi64x(position + 4 * u), step);
      w1[u] = _mm256_srli_epi64(w0[u], 32);
      w2[u] = w3[u] = _mm256_setzero_si256();
    }
    uint32_t key0 = static_cast<uint32_t>(seed);
    uint32_t key1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const __m256i k0 = _mm256_set1_epi64x(key0);
      const __m256i k1 = _mm256_set1_epi64x(key1);
      for (int u = 0; u < 2; ++u) {
        const __m256i p0 = _mm256_mul_epu32(w0[u], m0);
        const __m256i p1 = _mm256_mul_epu32(w2[u], m1);
        w0[u] = _mm256_xor_si256(
            _mm256_xor_si256(_mm256_srli_epi64(p1, 32), w1[u]), k0);
        w2[u] = _mm256_xor_si256(
            _mm256_xor_si256(_mm256_srli_epi64(p0, 32), w3[u]), k1);
        w1[u] = p1;
        w3[u] = p0;
      }
      key0 += kPhiloxKeyStep0;
      key1 += kPhiloxKeyStep1;
    }
    for (int u = 0; u < 2; ++u) {
      const __m256i a = _mm256_or_si256(_mm256_and_si256(w0[u], low_half),
                                        _mm256_slli_epi64(w1[u], 32));
      const __m256i b = _mm256_or_si256(_mm256_and_si256(w2[u], low_half),
                                        _mm256_slli_epi64(w3[u], 32));
      const __m256i even = _mm256_unpacklo_epi64(a, b);  // counters 0 and 2
      const __m256i odd = _mm256_unpackhi_epi64(a, b);   // counters 1 and 3
      __m256i* to = reinterpret_cast<__m256i*>(out + 16 * u);
      _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
      _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
    }
    out += kWordGroup / 2;
    position += kCounters / 2;
  }
}

#endif  // __x86_64__

struct UniformFloatBody {
  static HOLDFAST_INLINE void Run(const uint32_t* words, int64_t n,
                                  float* out) {
    for (int64_t i = 0; i < n; ++i) out[i] = UniformFloat(words[i]);
  }
};

struct UniformDoubleBody {
  static HOLDFAST_INLINE void Run(const uint32_t* words, int64_t n,
                                  double* out) {
    for (int64_t i = 0; i < n; ++i) {
      out[i] = UniformDouble(JoinWords(words[2 * i], words[2 * i + 1]));
    }
  }
};

// Loops of a constant length, so that every element takes the vector routines
// (see kPadded in kernels/elementwise.h).
struct NormalFloatBody {
  static HOLDFAST_INLINE void Run(const uint32_t* words, int64_t n,
                                  float* out) {
    constexpr int kPairs = 16;
    constexpr float kTwoPi = 6.28318530717958647692f;
    for (int64_t i = 0; i < n; i += 2 * kPairs) {
      float radius[kPairs], angle[kPairs], sine[kPairs], cosine[kPairs];
      for (int j = 0; j < kPairs; ++j) {
        radius[j] = PositiveFloat(words[i + 2 * j]);
        angle[j] = kTwoPi * UniformFloat(words[i + 2 * j + 1]);
      }
      for (int j = 0; j < kPairs; ++j) {
        radius[j] = std::sqrt(-2.0f * std::log(radius[j]));
      }
      for (int j = 0; j < kPairs; ++j) sine[j] = std::sin(angle[j]);
      for (int j = 0; j < kPairs; ++j) cosine[j] = std::cos(angle[j]);
      for (int j = 0; j < kPairs; ++j) {
        out[i + 2 * j] = radius[j] * cosine[j];
        out[i + 2 * j + 1] = radius[j] * sine[j];
      }
    }
  }
};

struct NormalDoubleBody {
  static HOLDFAST_INLINE void Run(const uint32_t* words, int64_t n,
                                  double* out) {
    constexpr int kPairs = 8;
    constexpr double kTwoPi = 6.28318530717958647692;
    for (int64_t i = 0; i < n; i += 2 * kPairs) {
      double radius[kPairs], angle[kPairs], sine[kPairs], cosine[kPairs];
      for (int j = 0; j < kPairs; ++j) {
        const uint32_t* w = words + 2 * i + 4 * j;
        radius[j] = PositiveDouble(JoinWords(w[0], w[1]));
        angle[j] = kTwoPi * UniformDouble(JoinWords(w[2], w[3]));
      }
      for (int j = 0; j < kPairs; ++j) {
        radius[j] = std::sqrt(-2.0 * std::log(radius[j]));
      }
      for (int j = 0; j < kPairs; ++j) sine[j] = std::sin(angle[j]);
      for (int j = 0; j < kPairs; ++j) cosine[j] = std::cos(angle[j]);
      for (int j = 0; j < kPairs; ++j) {
        out[i + 2 * j] = radius[j] * cosine[j];
        out[i + 2 * j + 1] = radius[j] * sine[j];
      }
    }
  }
};

}  // namespace

void GenerateWords(uint64_t seed, uint64_t position, int64_t count,
                   RandomWords* words) {
#if defined(__x86_64__)
  if (kSimdLevel == SimdLevel::kAvx512) {
    Avx512Words(seed, position, count, words->w);
    return;
  }
  if (kSimdLevel == SimdLevel::kAvx2) {
    Avx2Words(seed, position, count, words->w);
    return;
  }
#endif
  PortableWords(seed, position, count, words->w);
}

void UniformBlock(const PhiloxState& philox, int64_t begin, int64_t n,
                  float* out) {
  RandomWords words;
  GenerateWords(philox.seed, philox.offset + begin / 4, n, &words);
  Vectorised<UniformFloatBody>(static_cast<const uint32_t*>(words.w), n, out);
}

void UniformBlock(const PhiloxState& philox, int64_t begin, int64_t n,
                  double* out) {
  RandomWords words;
  GenerateWords(philox.seed, philox.offset + begin / 2, 2 * n, &words);
  Vectorised<UniformDoubleBody>(static_cast<const uint32_t*>(words.w), n, out);
}

void NormalBlock(const PhiloxState& philox, int64_t begin, int64_t n,
                 float* out) {
  RandomWords words;
  GenerateWords(philox.seed, philox.offset + begin / 4, n, &words);
  Vectorised<NormalFloatBody>(static_cast<const uint32_t*>(words.w), n, out);
}

void NormalBlock(const PhiloxState& philox, int64_t begin, int64_t n,
                 double* out) {
  RandomWords words;
  GenerateWords(philox.seed, philox.offset + begin / 2, 2 * n, &words);
  Vectorised<NormalDoubleBody>(static_cast<const uint32_t*>(words.w), n, out);
}

void IntegerBlock(const PhiloxState& philox, int64_t begin, int64_t n,
                  uint64_t range, uint64_t* out) {
  RandomWords words;
  GenerateWords(philox.seed, philox.offset + begin / 2, 2 * n, &words);
  for (int64_t i = 0; i < n; ++i) {
    out[i] =
        UniformInteger(JoinWords(words.w[2 * i], words.w[2 * i + 1]), range);
  }
}

}  // namespace holdfast::cpu
