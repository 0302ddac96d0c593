// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The Python functions and methods of the op table: argument binding by the
// row's signature, one C function per op, no Python frame in between.
//
// PyTorch has overloads that one signature cannot express (`add(alpha=)`,
// `sum(dtype=)` positions, ...). A Python function registered with
// SetOverload is called when the arguments do not fit the row, so that the
// common call stays as fast as can be.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_OP_FUNCTION_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_OP_FUNCTION_H_

#include <string>
#include <vector>

#include "client/session.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// Prepares interned parameter names; before everything else here.
bool InitOpFunctions();

// The submodule `_C.ops` with a function per op and in-place form.
bool AddOpsModule(PyObject* module);

// Methods of Tensor: public ops whose first parameter is `input`.
void AppendOpMethods(std::vector<PyMethodDef>* methods);

// "alpha=1" and the like: keywords beside the row's parameters.
std::vector<std::string> ExtraParameters(const OpSchema& schema, bool inplace,
                                         bool method);
// What help() says of the op's function or method.
std::string OpHelp(const OpSchema& schema, bool inplace, bool method);

// _C.set_overload(name, callable)
PyObject* SetOverload(PyObject* module, PyObject* args);

// _C.store_out(out, result): what `out=` of an op does, for composites.
PyObject* StoreOut(PyObject* module, PyObject* args);

// _C.schema(): the table as a list of dicts.
PyObject* Schema(PyObject* module, PyObject* unused);

// Runs op `id` with Python arguments; `self` (may be null) goes first.
PyObject* CallOp(OpId id, bool inplace, PyObject* self, PyObject* const* args,
                 Py_ssize_t nargs, PyObject* kwnames);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_OP_FUNCTION_H_
