// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/size_type.h"

#include <string>

namespace holdfast::python {
namespace {

PyTypeObject* g_type;

std::string& PackageName() {
  static auto* name = new std::string("holdfast");
  return *name;
}

PyObject* FromTuple(PyObject* tuple) {
  return PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(g_type),
                                      tuple, nullptr);
}

PyObject* Repr(PyObject* self) {
  PyRef list(PySequence_List(self));
  if (!list) return nullptr;
  return PyUnicode_FromFormat("%s.Size(%R)", ShownPackage(), list.get());
}

PyObject* Numel(PyObject* self, PyObject*) {
  int64_t product = 1;
  for (Py_ssize_t i = 0; i < PyTuple_Size(self); ++i) {
    const int64_t size = PyLong_AsLongLong(PyTuple_GetItem(self, i));
    if (size == -1 && PyErr_Occurred() != nullptr) return nullptr;
    product *= size;
  }
  return PyLong_FromLongLong(product);
}

// A slice of a Size is a Size, an item is an int.
PyObject* Subscript(PyObject* self, PyObject* key) {
  auto base = reinterpret_cast<binaryfunc>(
      PyType_GetSlot(&PyTuple_Type, Py_mp_subscript));
  PyRef item(base(self, key));
  if (!item || !PyTuple_CheckExact(item.get())) return item.release();
  return FromTuple(item.get());
}

PyObject* Concat(PyObject* self, PyObject* other) {
  auto base =
      reinterpret_cast<binaryfunc>(PyType_GetSlot(&PyTuple_Type, Py_sq_concat));
  PyRef joined(base(self, other));
  if (!joined) return nullptr;
  return FromTuple(joined.get());
}

PyObject* Reduce(PyObject* self, PyObject*) {
  PyRef tuple(PySequence_List(self));
  if (!tuple) return nullptr;
  return Py_BuildValue("(O(O))", reinterpret_cast<PyObject*>(g_type),
                       tuple.get());
}

PyMethodDef g_methods[] = {
    {"numel", Numel, METH_NOARGS, "Number of elements of that shape."},
    {"__reduce__", Reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot g_slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(Repr)},
    {Py_tp_methods, g_methods},
    {Py_mp_subscript, reinterpret_cast<void*>(Subscript)},
    {Py_sq_concat, reinterpret_cast<void*>(Concat)},
    {Py_tp_doc, const_cast<char*>("The shape of a tensor: a tuple of ints.")},
    {0, nullptr},
};
// Sizes 0: as tuple's.
PyType_Spec g_spec = {"holdfast.Size", 0, 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, g_slots};

bool Fill(PyObject* tuple, absl::Span<const int64_t> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    PyObject* item = PyLong_FromLongLong(values[i]);
    if (item == nullptr) return false;
    // Steals the item. The tuple is new, so this is allowed.
    if (PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), item) < 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

const char* ShownPackage() { return PackageName().c_str(); }

PyObject* SetShownPackage(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8AndSize(name, nullptr);
  if (text == nullptr) return nullptr;
  PackageName() = text;
  Py_RETURN_NONE;
}

bool AddSizeType(PyObject* module) {
  PyRef bases(PyTuple_Pack(1, reinterpret_cast<PyObject*>(&PyTuple_Type)));
  if (!bases) return false;
  g_type = reinterpret_cast<PyTypeObject*>(
      PyType_FromSpecWithBases(&g_spec, bases.get()));
  if (g_type == nullptr) return false;
  return PyModule_AddObjectRef(module, "Size",
                               reinterpret_cast<PyObject*>(g_type)) == 0;
}

PyObject* NewSize(absl::Span<const int64_t> shape) {
  PyRef size(
      PyType_GenericAlloc(g_type, static_cast<Py_ssize_t>(shape.size())));
  if (!size || !Fill(size.get(), shape)) return nullptr;
  return size.release();
}

PyObject* NewIntTuple(absl::Span<const int64_t> values) {
  PyRef tuple(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  if (!tuple || !Fill(tuple.get(), values)) return nullptr;
  return tuple.release();
}

}  // namespace holdfast::python
