// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// torch.set_default_dtype: what floating point numbers without a type become.
// The op table knows one default, float32; another is the client's affair: it
// names the type in the call, or converts integers before an op that would make
// float32 of them. All of it is guarded by the GIL.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_DEFAULT_DTYPE_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_DEFAULT_DTYPE_H_

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "client/session.h"
#include "python_client/src/python.h"

namespace holdfast::python {

extern DType g_default_float;

inline bool HasOtherDefault() { return g_default_float != kDefaultFloat; }
// complex128 for float64, else complex64.
DType DefaultComplex();

// _C.set_default_dtype(dtype), _C.default_dtype().
PyObject* SetDefaultDType(PyObject*, PyObject* dtype);
PyObject* GetDefaultDType(PyObject*, PyObject*);

// Changes a call so that its results have the default type where the op table
// would give float32. False with a Python error set.
// REQUIRES: HasOtherDefault().
bool UseDefault(Attrs* attrs, absl::InlinedVector<client::Tensor, 4>* inputs,
                bool inplace);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_DEFAULT_DTYPE_H_
