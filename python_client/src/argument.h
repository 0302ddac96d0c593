// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// From Python arguments to attribute values and tensors, typed by the op
// table's parameters.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_ARGUMENT_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_ARGUMENT_H_

#include "client/session.h"
#include "python_client/src/python.h"

namespace holdfast::python {

enum class Converted { kYes, kNo, kError };  // kError: Python error set

// bool, int, float and NumPy's scalars keep their kind. kNo for anything else
// (arrays included), without an error.
Converted AsNumber(PyObject* object, AttrValue* value);

// An integer, a NumPy integer, or an integer tensor of one element.
Converted AsInt(PyObject* object, int64_t* value);

// A tuple or list of integers, or one integer; with `repeat` one stands for
// that many.
Converted AsInts(PyObject* object, int repeat, Dims* values);

// One attribute argument; `name` is the public function, for the message.
bool ToAttr(const char* name, const OpParam& param, PyObject* object,
            AttrValue* value);

// TypeError: "add(): argument 'other' must be Tensor or number, not str".
void RaiseArgumentType(const char* name, const OpParam& param,
                       PyObject* object);

// "float", "numpy.ndarray": how messages name an object's type.
PyRef TypeName(PyObject* object);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_ARGUMENT_H_
