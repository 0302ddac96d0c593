// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/dtype.h"

#include <algorithm>

namespace holdfast {
namespace {

struct DTypeInfo {
  absl::string_view name;
  absl::string_view short_name;
  uint8_t item_size;
  DTypeCategory category;
};

constexpr DTypeCategory kB = DTypeCategory::kBool;
constexpr DTypeCategory kI = DTypeCategory::kInteger;
constexpr DTypeCategory kF = DTypeCategory::kFloat;

// Indexed by the enum's value.
constexpr DTypeInfo kInfo[kDTypeLimit] = {
    {"invalid", "?", 1, kB},     {"bool", "bool", 1, kB},
    {"uint8", "u8", 1, kI},      {"int8", "i8", 1, kI},
    {"int16", "i16", 2, kI},     {"int32", "i32", 4, kI},
    {"int64", "i64", 8, kI},     {"float16", "f16", 2, kF},
    {"bfloat16", "bf16", 2, kF}, {"float32", "f32", 4, kF},
    {"float64", "f64", 8, kF},
};

const DTypeInfo& Info(DType dtype) {
  const int value = static_cast<int>(dtype);
  return kInfo[value < kDTypeLimit ? value : 0];
}

}  // namespace

bool IsValidDType(int value) { return value >= 1 && value < kDTypeLimit; }
size_t ItemSize(DType dtype) { return Info(dtype).item_size; }
DTypeCategory Category(DType dtype) { return Info(dtype).category; }
absl::string_view DTypeName(DType dtype) { return Info(dtype).name; }
absl::string_view DTypeShortName(DType dtype) { return Info(dtype).short_name; }

bool ParseDType(absl::string_view name, DType* dtype) {
  for (int i = 1; i < kDTypeLimit; ++i) {
    if (kInfo[i].name == name) {
      *dtype = static_cast<DType>(i);
      return true;
    }
  }
  return false;
}

DType PromoteTypes(DType a, DType b) {
  if (a == b) return a;
  const DTypeCategory ca = Category(a), cb = Category(b);
  if (ca != cb) return ca > cb ? a : b;
  if (ca == DTypeCategory::kFloat) {
    const bool halves = ItemSize(a) == 2 && ItemSize(b) == 2;
    if (halves) return DType::kFloat32;  // float16 with bfloat16
    return std::max(a, b);
  }
  // uint8 with int8 needs the next wider signed type; otherwise the wider one.
  const bool mixed_bytes = ItemSize(a) == 1 && ItemSize(b) == 1;
  if (mixed_bytes) return DType::kInt16;
  return std::max(a, b);
}

}  // namespace holdfast
