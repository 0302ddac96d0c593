// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// holdfast.dtype: one singleton object per element type, compared by identity
// as in PyTorch.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_DTYPE_TYPE_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_DTYPE_TYPE_H_

#include "client/tensor.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// Adds the type and its singletons ("float32", ...) to the module.
bool AddDTypes(PyObject* module);

// Borrowed; lives as long as the process.
PyObject* DTypeObject(DType dtype);

// A holdfast.dtype, or Python's bool, int (int64) and float (float64) as
// PyTorch reads them. False without a Python error when it is neither.
bool AsDType(PyObject* object, DType* dtype);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_DTYPE_TYPE_H_
