// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/buffer_format.h"

#include <array>
#include <cstring>

namespace holdfast::python {
namespace {

template <typename T>
char* CopyLine(const char* in, Py_ssize_t stride, Py_ssize_t count, char* out) {
  for (Py_ssize_t i = 0; i < count; ++i, in += stride, out += sizeof(T)) {
    std::memcpy(out, in, sizeof(T));
  }
  return out;
}

char* CopyDim(const Py_buffer& view, int dim, const char* in, char* out) {
  if (dim == view.ndim) {
    std::memcpy(out, in, static_cast<size_t>(view.itemsize));
    return out + view.itemsize;
  }
  const Py_ssize_t count = view.shape[dim];
  const Py_ssize_t stride = view.strides[dim];
  if (dim == view.ndim - 1) {
    if (stride == view.itemsize) {
      std::memcpy(out, in, static_cast<size_t>(count * stride));
      return out + count * stride;
    }
    switch (view.itemsize) {
      case 1:
        return CopyLine<uint8_t>(in, stride, count, out);
      case 2:
        return CopyLine<uint16_t>(in, stride, count, out);
      case 4:
        return CopyLine<uint32_t>(in, stride, count, out);
      case 8:
        return CopyLine<uint64_t>(in, stride, count, out);
      case 16:
        return CopyLine<std::array<uint64_t, 2>>(in, stride, count, out);
    }
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    out = CopyDim(view, dim + 1, in + i * stride, out);
  }
  return out;
}

}  // namespace

const char* BufferFormat(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "?";
    case DType::kUInt8:
      return "B";
    case DType::kInt8:
      return "b";
    case DType::kInt16:
      return "h";
    case DType::kInt32:
      return "i";
    case DType::kInt64:
      // NumPy's int64 is C's long where that has 64 bits.
      return sizeof(long) == 8 ? "l" : "q";  // NOLINT(runtime/int)
    case DType::kFloat16:
      return "e";
    case DType::kFloat32:
      return "f";
    case DType::kFloat64:
      return "d";
    case DType::kComplex64:
      return "Zf";
    case DType::kComplex128:
      return "Zd";
    case DType::kBFloat16:
      break;
  }
  return nullptr;
}

bool ParseBufferFormat(const char* format, Py_ssize_t itemsize, DType* dtype) {
  if (format == nullptr) format = "B";
  // Native order, and on the little-endian machines this runs on also '<'.
  if (*format == '@' || *format == '=' || *format == '<' ||
      (*format == '>' && itemsize == 1)) {
    ++format;
  }
  if (format[0] == 'Z' && (format[1] == 'f' || format[1] == 'd') &&
      format[2] == '\0') {
    const bool wide = format[1] == 'd';
    *dtype = wide ? DType::kComplex128 : DType::kComplex64;
    return itemsize == (wide ? 16 : 8);
  }
  if (format[0] == '\0' || format[1] != '\0') return false;
  switch (format[0]) {
    case '?':
      *dtype = DType::kBool;
      return itemsize == 1;
    case 'B':
      *dtype = DType::kUInt8;
      return itemsize == 1;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      switch (itemsize) {
        case 1:
          *dtype = DType::kInt8;
          return true;
        case 2:
          *dtype = DType::kInt16;
          return true;
        case 4:
          *dtype = DType::kInt32;
          return true;
        case 8:
          *dtype = DType::kInt64;
          return true;
      }
      return false;
    case 'e':
      *dtype = DType::kFloat16;
      return itemsize == 2;
    case 'f':
      *dtype = DType::kFloat32;
      return itemsize == 4;
    case 'd':
      *dtype = DType::kFloat64;
      return itemsize == 8;
    default:
      return false;
  }
}

void CopyRowMajor(const Py_buffer& view, char* out) {
  // An empty buffer may have strides that lead nowhere.
  if (view.len == 0) return;
  CopyDim(view, 0, static_cast<const char*>(view.buf), out);
}

}  // namespace holdfast::python
