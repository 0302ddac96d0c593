// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Python code in the graph: what autograd.Function and Tensor.register_hook
// stand on. A callable takes a tuple of gradients (Tensor or None) and returns
// a tuple of as many results as it owes.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_USER_CODE_BINDING_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_USER_CODE_BINDING_H_

#include <memory>
#include <string>

#include "client/user_code.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// The Python object behind a function's node; null if it is none of ours.
PyObject* ObjectOf(const client::UserCode& code);  // borrowed

// Code for a graph. Its own thread need not hold the GIL.
std::shared_ptr<client::UserCode> MakeUserCode(PyRef callable,
                                               std::string name);

// Raises what user code raised on this thread during the last backward. False
// if it raised nothing.
bool RaiseFromUserCode();

// Module functions.
// (context, name, inputs, outputs, written): context._run(gradients) is the
// function's backward; inputs and outputs are tuples of Tensor or None.
PyObject* RecordFunction(PyObject* module, PyObject* args);
// (tensor, callable) -> number
PyObject* RegisterHook(PyObject* module, PyObject* args);
// (tensor, number)
PyObject* RemoveHook(PyObject* module, PyObject* args);
// (tensor, context, output)
PyObject* RestoreOutput(PyObject* module, PyObject* args);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_USER_CODE_BINDING_H_
