// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// exp() without branches or calls, for loops that the compiler vectorises.
// Within 2 ulp; underflows gradually, overflows to infinity, keeps NaN.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_FAST_EXP_H_
#define HOLDFAST_KERNELS_FAST_EXP_H_

#include <cstdint>
#include <cstring>

#include "ops/host_device.h"

namespace holdfast {

// exp(x) = 2^n * exp(r), |r| <= ln(2) / 2. n is rounded by adding 1.5 * 2^23,
// which leaves it in the low bits of the sum too. 2^n is applied in two halves
// since n alone can be out of a float's exponent range.
HOLDFAST_HD float FastExp(float x) {
  x = x < -104.0f ? -104.0f : x;  // exp is 0 there; NaN compares false
  x = x > 89.0f ? 89.0f : x;      // infinity there
  const float magic = 12582912.0f;
  const float shifted = x * 1.44269504088896341f + magic;
  const float n = shifted - magic;
  float r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  const int32_t k = static_cast<int32_t>(bits - 0x4B400000u);
  const int32_t half = k >> 1;
  const uint32_t bits1 = static_cast<uint32_t>(half + 127) << 23;
  const uint32_t bits2 = static_cast<uint32_t>(k - half + 127) << 23;
  float scale1, scale2;
  std::memcpy(&scale1, &bits1, sizeof(bits1));
  std::memcpy(&scale2, &bits2, sizeof(bits2));
  return p * scale1 * scale2;
}

HOLDFAST_HD double FastExp(double x) {
  x = x < -746.0 ? -746.0 : x;
  x = x > 710.0 ? 710.0 : x;
  const double magic = 6755399441055744.0;  // 1.5 * 2^52
  const double shifted = x * 1.4426950408889634074 + magic;
  const double n = shifted - magic;
  double r = x - n * 6.93145751953125e-1;
  r = r - n * 1.42860682030941723212e-6;
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  uint64_t bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  // Arithmetic on 32 bits: 64-bit arithmetic shifts do not vectorise on AVX2.
  const int32_t k = static_cast<int32_t>(static_cast<uint32_t>(bits));
  const int32_t half = k >> 1;
  const uint64_t bits1 = static_cast<uint64_t>(half + 1023) << 52;
  const uint64_t bits2 = static_cast<uint64_t>(k - half + 1023) << 52;
  double scale1, scale2;
  std::memcpy(&scale1, &bits1, sizeof(bits1));
  std::memcpy(&scale2, &bits2, sizeof(bits2));
  return p * scale1 * scale2;
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_FAST_EXP_H_
