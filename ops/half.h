// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The 16-bit floating point types as storage: arithmetic happens in float32.
// Float16 is IEEE 754 binary16, BFloat16 the upper half of a binary32. Rounding
// is to nearest, halves to even; NaN stays NaN. Free of branches, so that the
// compiler vectorises loops of them. GPUs have an instruction for each.
// Thread-safety: plain values, pure functions.
#ifndef HOLDFAST_OPS_HALF_H_
#define HOLDFAST_OPS_HALF_H_

#include <cstdint>
#include <cstring>

#include "ops/host_device.h"

namespace holdfast {

HOLDFAST_HD float FloatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

HOLDFAST_HD uint32_t BitsOfFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

struct BFloat16 {
  uint16_t bits;

  static HOLDFAST_HD BFloat16 Of(float value) {
#if defined(__CUDA_ARCH__)
    BFloat16 result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
#else
    const uint32_t raw = BitsOfFloat(value);
    const uint32_t rounded = raw + 0x7fff + ((raw >> 16) & 1);
    const bool nan = (raw & 0x7fffffff) > 0x7f800000;
    return {static_cast<uint16_t>((nan ? raw | 0x400000 : rounded) >> 16)};
#endif
  }
  HOLDFAST_HD float ToFloat() const {
    return FloatOfBits(static_cast<uint32_t>(bits) << 16);
  }
};

struct Float16 {
  uint16_t bits;

  static HOLDFAST_HD Float16 Of(float value) {
#if defined(__CUDA_ARCH__)
    Float16 result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
#else
    const uint32_t raw = BitsOfFloat(value);
    const uint32_t sign = (raw >> 16) & 0x8000;
    const uint32_t magnitude = raw & 0x7fffffff;
    // Normal results: the exponent rebiased, rounded on the 13 bits that go.
    const uint32_t normal =
        (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    // Subnormal ones: adding 0.5 lets the addition itself round at 2^-24.
    const uint32_t subnormal =
        BitsOfFloat(FloatOfBits(magnitude) + 0.5f) - BitsOfFloat(0.5f);
    const uint32_t finite = magnitude < 0x38800000 ? subnormal : normal;
    // From 65520 on: infinity. NaN keeps its upper bits and stays quiet.
    const uint32_t nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
    const uint32_t result = magnitude > 0x7f800000    ? nan
                            : magnitude >= 0x477ff000 ? 0x7c00
                                                      : finite;
    return {static_cast<uint16_t>(sign | result)};
#endif
  }
  HOLDFAST_HD float ToFloat() const {
#if defined(__CUDA_ARCH__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#else
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    const uint32_t shifted = static_cast<uint32_t>(bits & 0x7fff) << 13;
    // The multiplication rebiases and makes subnormals normal, exactly.
    const uint32_t finite = BitsOfFloat(FloatOfBits(shifted) * 0x1p112f);
    const uint32_t special = shifted | 0x7f800000;
    return FloatOfBits(sign | (shifted >= 0x0f800000 ? special : finite));
#endif
  }
};

}  // namespace holdfast

#endif  // HOLDFAST_OPS_HALF_H_
