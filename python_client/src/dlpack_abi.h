// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The structures of DLPack 1.0 (https://dmlc.github.io/dlpack), by which
// libraries of one process hand each other arrays, and the layout before it.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_DLPACK_ABI_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_DLPACK_ABI_H_

#include <cstdint>

namespace holdfast::python::dlpack {

inline constexpr int32_t kCuda = 2;
inline constexpr int32_t kCudaManaged = 13;

enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
};

struct Device {
  int32_t type;
  int32_t ordinal;
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Array {
  void* data;
  Device device;
  int32_t rank;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;      // elements; null: row-major
  uint64_t byte_offset;  // from data to the first element
};

// In capsules named "dltensor".
struct Managed {
  static constexpr char kName[] = "dltensor";
  static constexpr char kUsedName[] = "used_dltensor";
  Array array;
  void* context;
  void (*deleter)(Managed*);  // on any thread
};

// In capsules named "dltensor_versioned".
struct ManagedVersioned {
  static constexpr char kName[] = "dltensor_versioned";
  static constexpr char kUsedName[] = "used_dltensor_versioned";
  static constexpr uint32_t kMajor = 1;
  uint32_t major, minor;
  void* context;
  void (*deleter)(ManagedVersioned*);  // on any thread
  uint64_t flags;                      // 1: read-only, 2: a copy
  Array array;
};

}  // namespace holdfast::python::dlpack

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_DLPACK_ABI_H_
