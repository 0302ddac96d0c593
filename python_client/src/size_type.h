// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// holdfast.Size: the tuple subclass that shapes are.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_SIZE_TYPE_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_SIZE_TYPE_H_

#include "client/tensor.h"
#include "python_client/src/python.h"

namespace holdfast::python {

bool AddSizeType(PyObject* module);

// The package that programs know this one as: "torch" under `holdfast run`, so
// that what they print is what PyTorch prints. Guarded by the GIL.
const char* ShownPackage();
// _C.set_shown_package(name).
PyObject* SetShownPackage(PyObject*, PyObject* name);

// A new Size; nullptr with a Python error set.
PyObject* NewSize(absl::Span<const int64_t> shape);

// A new plain tuple of ints (strides, dims).
PyObject* NewIntTuple(absl::Span<const int64_t> values);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_SIZE_TYPE_H_
