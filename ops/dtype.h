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
};
inline constexpr int kDTypeLimit = 11;  // one past the largest value

// Order matters: promotion never leaves the higher category.
enum class DTypeCategory : uint8_t { kBool, kInteger, kFloat };

// True for the values of the enum; wire input goes through this first.
bool IsValidDType(int value);
// The next four are inline because every op call asks. Values outside the enum
// read as a type of one byte that nobody supports.

// True for the types kernels are compiled for in this version.
inline constexpr bool IsSupportedDType(DType dtype) {
  constexpr uint32_t kSupported = 1u << static_cast<int>(DType::kBool) |
                                  1u << static_cast<int>(DType::kUInt8) |
                                  1u << static_cast<int>(DType::kInt32) |
                                  1u << static_cast<int>(DType::kInt64) |
                                  1u << static_cast<int>(DType::kFloat32) |
                                  1u << static_cast<int>(DType::kFloat64);
  const uint32_t value = static_cast<uint32_t>(dtype);
  return value < kDTypeLimit && (kSupported >> value & 1) != 0;
}
// Bytes of one element.
inline constexpr size_t ItemSize(DType dtype) {
  constexpr uint8_t kSizes[kDTypeLimit] = {1, 1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  const uint32_t value = static_cast<uint32_t>(dtype);
  return value < kDTypeLimit ? kSizes[value] : 1;
}
inline constexpr DTypeCategory Category(DType dtype) {
  const uint32_t value = static_cast<uint32_t>(dtype);
  if (value >= static_cast<uint32_t>(DType::kFloat16) && value < kDTypeLimit) {
    return DTypeCategory::kFloat;
  }
  return value >= static_cast<uint32_t>(DType::kUInt8) && value < kDTypeLimit
             ? DTypeCategory::kInteger
             : DTypeCategory::kBool;
}
inline constexpr bool IsFloat(DType d) {
  return Category(d) == DTypeCategory::kFloat;
}
inline constexpr bool IsIntegral(DType d) { return !IsFloat(d); }  // with bool

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
