// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/random.h"

#include <cmath>

#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/philox.h"

namespace holdfast {
namespace {

constexpr int kCounters = 16;  // generated side by side
constexpr int64_t kWordGroup = kCounters * 4;

struct WordsBody {
  static HOLDFAST_INLINE void Run(uint64_t seed, uint64_t position,
                                  int64_t count, uint32_t* out) {
    for (int64_t done = 0; done < count; done += kWordGroup) {
      uint32_t w0[kCounters], w1[kCounters], w2[kCounters], w3[kCounters];
      for (int j = 0; j < kCounters; ++j) {
        const uint64_t counter = position + j;
        w0[j] = static_cast<uint32_t>(counter);
        w1[j] = static_cast<uint32_t>(counter >> 32);
        w2[j] = 0;
        w3[j] = 0;
      }
      uint32_t key0 = static_cast<uint32_t>(seed);
      uint32_t key1 = static_cast<uint32_t>(seed >> 32);
      for (int round = 0; round < kPhiloxRounds; ++round) {
        for (int j = 0; j < kCounters; ++j) {
          PhiloxRound(key0, key1, &w0[j], &w1[j], &w2[j], &w3[j]);
        }
        key0 += kPhiloxKeyStep0;
        key1 += kPhiloxKeyStep1;
      }
      for (int j = 0; j < kCounters; ++j) {
        out[4 * j] = w0[j];
        out[4 * j + 1] = w1[j];
        out[4 * j + 2] = w2[j];
        out[4 * j + 3] = w3[j];
      }
      out += kWordGroup;
      position += kCounters;
    }
  }
};

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
  Vectorised<WordsBody>(seed, position, count, words->w);
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

}  // namespace holdfast
