// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// From a run-time DType to a C++ type: DispatchDType(dtype, [&](auto tag) {
// using T = typename decltype(tag)::type; ... }). The callbacks of one call
// return one type: void, a pointer, or absl::Status. DispatchDType knows the
// six types that real numbers are computed in (ComputeType in ops/dtype.h);
// kernels never meet the narrower ones unless their row says kAnyDType.
//
// kBool is C++ bool, but a client may have uploaded bytes other than 0 and 1,
// and reading those through a bool lvalue is undefined: read elements with
// LoadElement.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_DTYPE_DISPATCH_H_
#define HOLDFAST_KERNELS_DTYPE_DISPATCH_H_

#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "ops/complex.h"
#include "ops/dtype.h"
#include "ops/half.h"

namespace holdfast {

template <typename T>
struct TypeTag {
  using type = T;
};

// The DType of a C++ element type.
template <typename T>
inline constexpr DType kDTypeOf = DType{};
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;
template <>
inline constexpr DType kDTypeOf<uint8_t> = DType::kUInt8;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kInt32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::kInt64;
template <>
inline constexpr DType kDTypeOf<float> = DType::kFloat32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kFloat64;
template <>
inline constexpr DType kDTypeOf<Complex<float>> = DType::kComplex64;
template <>
inline constexpr DType kDTypeOf<Complex<double>> = DType::kComplex128;

template <typename T>
inline T LoadElement(const T* p) {
  if constexpr (std::is_same_v<T, bool>) {
    return *reinterpret_cast<const unsigned char*>(p) != 0;
  } else {
    return *p;
  }
}

// What a dispatch returns for a type that no kernel is compiled for. Inference
// refuses those, so this is a second line of defence, not an error message.
template <typename R>
inline R UnsupportedDType() {
  if constexpr (std::is_same_v<R, absl::Status>) {
    return absl::InternalError("kernel not compiled for this dtype");
  } else {
    return R();
  }
}

template <typename F>
inline auto DispatchDType(DType dtype, F&& fn)
    -> decltype(fn(TypeTag<float>{})) {
  switch (dtype) {
    case DType::kBool:
      return fn(TypeTag<bool>{});
    case DType::kUInt8:
      return fn(TypeTag<uint8_t>{});
    case DType::kInt32:
      return fn(TypeTag<int32_t>{});
    case DType::kInt64:
      return fn(TypeTag<int64_t>{});
    case DType::kFloat32:
      return fn(TypeTag<float>{});
    case DType::kFloat64:
      return fn(TypeTag<double>{});
    default:
      return UnsupportedDType<decltype(fn(TypeTag<float>{}))>();
  }
}

// The six of DispatchDType, and the complex types.
template <typename F>
inline auto DispatchWithComplex(DType dtype, F&& fn)
    -> decltype(fn(TypeTag<float>{})) {
  switch (dtype) {
    case DType::kComplex64:
      return fn(TypeTag<Complex<float>>{});
    case DType::kComplex128:
      return fn(TypeTag<Complex<double>>{});
    default:
      return DispatchDType(dtype, fn);
  }
}

// float32 and float64 only.
template <typename F>
inline auto DispatchFloat(DType dtype, F&& fn)
    -> decltype(fn(TypeTag<float>{})) {
  switch (dtype) {
    case DType::kFloat32:
      return fn(TypeTag<float>{});
    case DType::kFloat64:
      return fn(TypeTag<double>{});
    default:
      return UnsupportedDType<decltype(fn(TypeTag<float>{}))>();
  }
}

// float32 and float64, and the complex types.
template <typename F>
inline auto DispatchField(DType dtype, F&& fn)
    -> decltype(fn(TypeTag<float>{})) {
  switch (dtype) {
    case DType::kComplex64:
      return fn(TypeTag<Complex<float>>{});
    case DType::kComplex128:
      return fn(TypeTag<Complex<double>>{});
    default:
      return DispatchFloat(dtype, fn);
  }
}

// int32 and int64 only.
template <typename F>
inline auto DispatchIndex(DType dtype, F&& fn)
    -> decltype(fn(TypeTag<int64_t>{})) {
  switch (dtype) {
    case DType::kInt32:
      return fn(TypeTag<int32_t>{});
    case DType::kInt64:
      return fn(TypeTag<int64_t>{});
    default:
      return UnsupportedDType<decltype(fn(TypeTag<int64_t>{}))>();
  }
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_DTYPE_DISPATCH_H_
