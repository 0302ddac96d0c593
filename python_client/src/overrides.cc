// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/overrides.h"

#include <utility>

#include "python_client/src/tensor_type.h"

namespace holdfast::python {

bool g_overrides = false;

namespace {

PyObject* g_dispatch;  // holdfast/overrides.py's
PyObject* g_ops;       // the module _C.ops
PyObject* g_name;      // "__torch_function__"
PyObject* g_disabled;  // _C._disabled_torch_function_impl
thread_local bool g_off = false;
thread_local int g_modes = 0;

class ScopedOff {
 public:
  ScopedOff() : before_(std::exchange(g_off, true)) {}
  ~ScopedOff() { g_off = before_; }
  ScopedOff(const ScopedOff&) = delete;
  ScopedOff& operator=(const ScopedOff&) = delete;

 private:
  const bool before_;
};

// Appends the argument, or those in a list or tuple, if they override.
bool Collect(PyObject* argument, PyObject* found) {
  if (argument == nullptr) return true;
  const bool tuple = PyTuple_Check(argument);
  if (tuple || PyList_Check(argument)) {
    const Py_ssize_t n = tuple ? PyTuple_Size(argument) : PyList_Size(argument);
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* const item =
          tuple ? PyTuple_GetItem(argument, i) : PyList_GetItem(argument, i);
      if (Overrides(Py_TYPE(item)) && PyList_Append(found, item) < 0) {
        return false;
      }
    }
    return true;
  }
  return !Overrides(Py_TYPE(argument)) || PyList_Append(found, argument) == 0;
}

}  // namespace

bool Overrides(PyTypeObject* type) {
  // Types of C have no such attribute but for ours.
  if (type == g_tensor_type ||
      (PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE) == 0) {
    return false;
  }
  PyRef own(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), g_name));
  if (!own) PyErr_Clear();
  return own && own.get() != g_disabled;
}

void NoteSubclass(PyTypeObject* type) {
  if (!g_overrides && Overrides(type)) g_overrides = true;
}

bool PackArguments(const OverridableCall& call, PyRef* args, PyRef* kwargs) {
  const int shift = call.self != nullptr ? 1 : 0;
  *args = PyRef(PyTuple_New(call.nargs + shift));
  *kwargs = PyRef(PyDict_New());
  if (!*args || !*kwargs) return false;
  if (call.self != nullptr) {
    Py_INCREF(call.self);
    PyTuple_SetItem(args->get(), 0, call.self);
  }
  for (Py_ssize_t i = 0; i < call.nargs; ++i) {
    Py_INCREF(call.args[i]);
    PyTuple_SetItem(args->get(), i + shift, call.args[i]);
  }
  const Py_ssize_t named =
      call.kwnames != nullptr ? PyTuple_Size(call.kwnames) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    if (PyDict_SetItem(kwargs->get(), PyTuple_GetItem(call.kwnames, i),
                       call.args[call.nargs + i]) < 0) {
      return false;
    }
  }
  return true;
}

bool TakenOver(const OverridableCall& call, PyObject** result) {
  if (g_off || g_dispatch == nullptr) return false;
  *result = nullptr;
  PyRef found(PyList_New(0));
  if (!found || !Collect(call.self, found.get())) return true;
  const Py_ssize_t named =
      call.kwnames != nullptr ? PyTuple_Size(call.kwnames) : 0;
  for (Py_ssize_t i = 0; i < call.nargs + named; ++i) {
    if (!Collect(call.args[i], found.get())) return true;
  }
  if (g_modes == 0 && PyList_Size(found.get()) == 0) return false;
  PyObject* const owner =
      call.method ? reinterpret_cast<PyObject*>(g_tensor_type) : g_ops;
  PyRef function(PyObject_GetAttrString(owner, call.name.c_str()));
  PyRef args, kwargs;
  if (!function || !PackArguments(call, &args, &kwargs)) return true;
  *result =
      PyObject_CallFunctionObjArgs(g_dispatch, function.get(), found.get(),
                                   args.get(), kwargs.get(), nullptr);
  return true;
}

bool InitOverrides(PyObject* module) {
  g_name = PyUnicode_InternFromString("__torch_function__");
  g_ops = PyObject_GetAttrString(module, "ops");
  g_disabled = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
  return g_name != nullptr && g_ops != nullptr && g_disabled != nullptr;
}

PyObject* SetDispatch(PyObject*, PyObject* f) {
  PyRef old(g_dispatch);
  Py_INCREF(f);
  g_dispatch = f;
  Py_RETURN_NONE;
}

PyObject* SetOverridesOff(PyObject*, PyObject* off) {
  const int wish = PyObject_IsTrue(off);
  if (wish < 0) return nullptr;
  return PyBool_FromLong(std::exchange(g_off, wish != 0));
}

PyObject* SetModes(PyObject*, PyObject* n) {
  const long count = PyLong_AsLong(n);
  if (count == -1 && PyErr_Occurred() != nullptr) return nullptr;
  g_modes = static_cast<int>(count);
  if (count > 0) g_overrides = true;
  Py_RETURN_NONE;
}

PyObject* DisabledOverride(PyObject*, PyObject* all) {
  PyObject *function, *types, *args = nullptr, *kwargs = nullptr;
  if (!PyArg_ParseTuple(all, "OO|OO", &function, &types, &args, &kwargs)) {
    return nullptr;
  }
  PyRef empty(PyTuple_New(0));
  if (!empty) return nullptr;
  const ScopedOff off;
  return PyObject_Call(function, args != nullptr ? args : empty.get(),
                       kwargs == Py_None ? nullptr : kwargs);
}

}  // namespace holdfast::python
