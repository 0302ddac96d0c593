// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The buffer protocol's format strings (module struct) and element types.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_BUFFER_FORMAT_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_BUFFER_FORMAT_H_

#include "client/tensor.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// nullptr for types that Python has no format for (bfloat16).
const char* BufferFormat(DType dtype);

// False for formats that are no element type (complex, structures, foreign
// byte order).
bool ParseBufferFormat(const char* format, Py_ssize_t itemsize, DType* dtype);

// Copies the elements of a strided buffer in row-major order.
void CopyRowMajor(const Py_buffer& view, char* out);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_BUFFER_FORMAT_H_
