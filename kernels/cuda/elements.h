// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Elements as device code reads and writes them: any stored type, converted to
// and from the type of a computation. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_ELEMENTS_H_
#define HOLDFAST_KERNELS_CUDA_ELEMENTS_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/element_convert.h"
#include "kernels/number_operand.h"
#include "kernels/stored_dispatch.h"
#include "ops/dtype.h"

namespace holdfast::cuda {

// The DType that is stored as S.
template <typename S>
inline constexpr DType kStoredDType = kDTypeOf<S>;
template <>
inline constexpr DType kStoredDType<Float16> = DType::kFloat16;
template <>
inline constexpr DType kStoredDType<BFloat16> = DType::kBFloat16;

// Element i of `data`, stored as S. A bool may be any byte: a client wrote it.
template <typename S>
HOLDFAST_HD S LoadStored(const void* data, int64_t i) {
  if constexpr (std::is_same_v<S, bool>) {
    return static_cast<const unsigned char*>(data)[i] != 0;
  } else {
    return static_cast<const S*>(data)[i];
  }
}

// The same where the type is known when it runs; every thread of a launch
// takes the same branch.
template <typename T>
HOLDFAST_HD T LoadAs(DType dtype, const void* data, int64_t i) {
  switch (dtype) {
    case DType::kBool:
      return Convert<T>(LoadStored<bool>(data, i));
    case DType::kUInt8:
      return Convert<T>(LoadStored<uint8_t>(data, i));
    case DType::kInt8:
      return Convert<T>(LoadStored<int8_t>(data, i));
    case DType::kInt16:
      return Convert<T>(LoadStored<int16_t>(data, i));
    case DType::kInt32:
      return Convert<T>(LoadStored<int32_t>(data, i));
    case DType::kInt64:
      return Convert<T>(LoadStored<int64_t>(data, i));
    case DType::kFloat16:
      return Convert<T>(LoadStored<Float16>(data, i));
    case DType::kBFloat16:
      return Convert<T>(LoadStored<BFloat16>(data, i));
    case DType::kFloat64:
      return Convert<T>(LoadStored<double>(data, i));
    case DType::kComplex64:
      return Convert<T>(LoadStored<Complex<float>>(data, i));
    case DType::kComplex128:
      return Convert<T>(LoadStored<Complex<double>>(data, i));
    default:
      return Convert<T>(LoadStored<float>(data, i));
  }
}

template <typename T>
HOLDFAST_HD void StoreAs(DType dtype, void* data, int64_t i, T value) {
  switch (dtype) {
    case DType::kBool:
      static_cast<bool*>(data)[i] = Convert<bool>(value);
      break;
    case DType::kUInt8:
      static_cast<uint8_t*>(data)[i] = Convert<uint8_t>(value);
      break;
    case DType::kInt8:
      static_cast<int8_t*>(data)[i] = Convert<int8_t>(value);
      break;
    case DType::kInt16:
      static_cast<int16_t*>(data)[i] = Convert<int16_t>(value);
      break;
    case DType::kInt32:
      static_cast<int32_t*>(data)[i] = Convert<int32_t>(value);
      break;
    case DType::kInt64:
      static_cast<int64_t*>(data)[i] = Convert<int64_t>(value);
      break;
    case DType::kFloat16:
      static_cast<Float16*>(data)[i] = Convert<Float16>(value);
      break;
    case DType::kBFloat16:
      static_cast<BFloat16*>(data)[i] = Convert<BFloat16>(value);
      break;
    case DType::kFloat64:
      static_cast<double*>(data)[i] = Convert<double>(value);
      break;
    case DType::kComplex64:
      static_cast<Complex<float>*>(data)[i] = Convert<Complex<float>>(value);
      break;
    case DType::kComplex128:
      static_cast<Complex<double>*>(data)[i] = Convert<Complex<double>>(value);
      break;
    default:
      static_cast<float*>(data)[i] = Convert<float>(value);
      break;
  }
}

// A tensor's elements as device code holds them: no pointer to host memory. A
// number (number_operand.h) is kept by value.
struct Operand {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  bool number = false;
  alignas(16) char value[16] = {};

  Operand() = default;
  explicit Operand(const TensorView& view)
      : data(view.data), dtype(view.spec->dtype), number(IsNumber(view)) {
    if (number) std::memcpy(value, view.data, ItemSize(dtype));
  }

  template <typename T>
  HOLDFAST_HD T Load(int64_t offset) const {
    return number ? LoadAs<T>(dtype, value, 0) : LoadAs<T>(dtype, data, offset);
  }
  template <typename T>
  HOLDFAST_HD void Store(int64_t offset, T element) const {
    StoreAs<T>(dtype, data, offset, element);
  }
};

// The real floating point types as they are stored.
template <typename F>
inline auto DispatchStoredFloat(DType dtype, F&& fn)
    -> decltype(fn(TypeTag<float>{})) {
  switch (dtype) {
    case DType::kFloat16:
      return fn(TypeTag<Float16>{});
    case DType::kBFloat16:
      return fn(TypeTag<BFloat16>{});
    default:
      return DispatchFloat(dtype, fn);
  }
}

// 16 bytes that are moved and never looked at.
struct alignas(16) Bits128 {
  uint64_t low, high;
};

// An unsigned type of the size of dtype's elements, for moving them.
template <typename F>
inline auto DispatchBits(DType dtype, F&& fn)
    -> decltype(fn(TypeTag<float>{})) {
  switch (ItemSize(dtype)) {
    case 1:
      return fn(TypeTag<uint8_t>{});
    case 2:
      return fn(TypeTag<uint16_t>{});
    case 4:
      return fn(TypeTag<uint32_t>{});
    case 8:
      return fn(TypeTag<uint64_t>{});
    default:
      return fn(TypeTag<Bits128>{});
  }
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_ELEMENTS_H_
