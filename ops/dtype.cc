// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/dtype.h"

#include <algorithm>

namespace holdfast {
namespace {

struct DTypeInfo {
  absl::string_view name;
  absl::string_view short_name;
};

// Indexed by the enum's value.
constexpr DTypeInfo kInfo[kDTypeLimit] = {
    {"invalid", "?"},       {"bool", "bool"},   {"uint8", "u8"},
    {"int8", "i8"},         {"int16", "i16"},   {"int32", "i32"},
    {"int64", "i64"},       {"float16", "f16"}, {"bfloat16", "bf16"},
    {"float32", "f32"},     {"float64", "f64"}, {"complex64", "c64"},
    {"complex128", "c128"},
};

const DTypeInfo& Info(DType dtype) {
  const int value = static_cast<int>(dtype);
  return kInfo[value < kDTypeLimit ? value : 0];
}

}  // namespace

bool IsValidDType(int value) { return value >= 1 && value < kDTypeLimit; }
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
  if (ca == DTypeCategory::kComplex || cb == DTypeCategory::kComplex) {
    const bool wide =
        RealType(a) == DType::kFloat64 || RealType(b) == DType::kFloat64;
    return wide ? DType::kComplex128 : DType::kComplex64;
  }
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
