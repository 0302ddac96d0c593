// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's protocol __torch_function__: objects of subclasses of Tensor, and
// of other classes, that take over the calls they are arguments of, and modes
// that take over all calls (holdfast/overrides.py). An op finds out by one look
// at a flag that there are none. Thread-safety: under the GIL.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_OVERRIDES_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_OVERRIDES_H_

#include <string>

#include "python_client/src/python.h"

namespace holdfast::python {

// Whether an object of such a subclass was ever made, or a mode entered.
// Objects of other classes are noticed where they fit no op.
extern bool g_overrides;

// A call of PyTorch's: a function of `_C.ops`, or a method of Tensor, by name.
// All borrowed.
struct OverridableCall {
  bool method = false;
  std::string name;
  PyObject* self = nullptr;  // goes before args; may be null
  PyObject* const* args = nullptr;
  Py_ssize_t nargs = 0;
  PyObject* kwnames = nullptr;
};

// Hands the call to whoever takes it over: true, and *result has what it
// returned, null with an error set. False: nobody does.
bool TakenOver(const OverridableCall& call, PyObject** result);

// Whether objects of the type take calls over: those of a subclass of Tensor do
// unless it says otherwise.
bool Overrides(PyTypeObject* type);

// An object of a subclass of Tensor has been made.
void NoteSubclass(PyTypeObject* type);

// The arguments as PyObject_Call takes them. False with an error set.
bool PackArguments(const OverridableCall& call, PyRef* args, PyRef* kwargs);

bool InitOverrides(PyObject* module);

// _C._set_torch_function_dispatch(f): f(function, overriding arguments, args,
// kwargs) finds who takes the call over.
PyObject* SetDispatch(PyObject* module, PyObject* f);
// _C._set_torch_function_off(off) -> as it was: on this thread nobody takes
// anything over.
PyObject* SetOverridesOff(PyObject* module, PyObject* off);
// _C._set_torch_function_modes(n): modes entered on this thread.
PyObject* SetModes(PyObject* module, PyObject* n);
// _C._disabled_torch_function_impl(func, types, args=(), kwargs=None): what a
// class has for __torch_function__ whose objects are plain tensors to ops.
PyObject* DisabledOverride(PyObject* module, PyObject* args);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_OVERRIDES_H_
