// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DType: the element type of a tensor, and PyTorch's type promotion.
// Thread-safety: everything here is a pure function.
#ifndef HOLDFAST_OPS_DTYPE_H_
#define HOLDFAST_OPS_DTYPE_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace holdfast {

// The values are the wire encoding (proto/holdfast.proto): never renumber.
enum class DType : uint8_t {
  kBool = 1,
  kUInt8 = 2,
  kInt8 = 3,
  kInt16 = 4,
  kInt32 = 5,
  kInt64 = 6,
  kFloat16 = 7,
  kBFloat16 = 8,
  kFloat32 = 9,
  kFloat64 = 10,
  kComplex64 = 11,   // two float32: real, imaginary
  kComplex128 = 12,  // two float64
};
inline constexpr int kDTypeLimit = 13;  // one past the largest value

// Order matters: promotion never leaves the higher category.
enum class DTypeCategory : uint8_t { kBool, kInteger, kFloat, kComplex };

// True for the values of the enum; wire input goes through this first.
bool IsValidDType(int value);
// What follows is inline because every op call asks. Values outside the enum
// read as a type of one byte.

// Bytes of one element.
inline constexpr size_t ItemSize(DType dtype) {
  constexpr uint8_t kSizes[kDTypeLimit] = {1, 1, 1, 1, 2, 4, 8,
                                           2, 2, 4, 8, 8, 16};
  const uint32_t value = static_cast<uint32_t>(dtype);
  return value < kDTypeLimit ? kSizes[value] : 1;
}
inline constexpr DTypeCategory Category(DType dtype) {
  const uint32_t value = static_cast<uint32_t>(dtype);
  if (value >= kDTypeLimit) return DTypeCategory::kBool;
  if (value >= static_cast<uint32_t>(DType::kComplex64)) {
    return DTypeCategory::kComplex;
  }
  if (value >= static_cast<uint32_t>(DType::kFloat16)) {
    return DTypeCategory::kFloat;
  }
  return value >= static_cast<uint32_t>(DType::kUInt8) ? DTypeCategory::kInteger
                                                       : DTypeCategory::kBool;
}
inline constexpr bool IsFloat(DType d) {
  return Category(d) == DTypeCategory::kFloat;
}
inline constexpr bool IsComplex(DType d) {
  return Category(d) == DTypeCategory::kComplex;
}
// What can carry a gradient.
inline constexpr bool IsDifferentiable(DType d) {
  return Category(d) >= DTypeCategory::kFloat;
}
inline constexpr bool IsIntegral(DType d) {  // with bool
  return Category(d) <= DTypeCategory::kInteger;
}

// The type that elements are computed in: 16-bit floats in float32, narrow
// integers in int32, everything else in itself. Integers wrap the same way.
inline constexpr DType ComputeType(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kInt16:
      return DType::kInt32;
    case DType::kFloat16:
    case DType::kBFloat16:
      return DType::kFloat32;
    default:
      return dtype;
  }
}
// The type of a complex number's parts; other types are their own.
inline constexpr DType RealType(DType dtype) {
  return dtype == DType::kComplex64    ? DType::kFloat32
         : dtype == DType::kComplex128 ? DType::kFloat64
                                       : dtype;
}

// "float32", as in Python. Never fails: an unknown value is "invalid".
absl::string_view DTypeName(DType dtype);
// "f32", used in error messages: f32[2,3].
absl::string_view DTypeShortName(DType dtype);
// Returns false when no type has that name.
bool ParseDType(absl::string_view name, DType* dtype);

// PyTorch's promotion table between two tensors of rank >= 1
// (torch.promote_types).
DType PromoteTypes(DType a, DType b);

// The type of Python scalars: True -> bool, 1 -> int64, 1.0 -> float32
// (the default float type).
inline constexpr DType kDefaultFloat = DType::kFloat32;

}  // namespace holdfast

#endif  // HOLDFAST_OPS_DTYPE_H_
