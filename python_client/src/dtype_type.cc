// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/dtype_type.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "python_client/src/size_type.h"

namespace holdfast::python {
namespace {

struct PyDType {
  PyObject_HEAD DType dtype;
};

PyTypeObject* g_type;
PyObject* g_objects[kDTypeLimit];

DType Of(PyObject* self) { return reinterpret_cast<PyDType*>(self)->dtype; }

PyObject* Repr(PyObject* self) {
  return PyUnicode_FromString(
      absl::StrCat(ShownPackage(), ".", DTypeName(Of(self))).c_str());
}

PyObject* Name(PyObject* self, void*) {
  return PyUnicode_FromString(std::string(DTypeName(Of(self))).c_str());
}

PyObject* IsFloatingPoint(PyObject* self, void*) {
  return PyBool_FromLong(IsFloat(Of(self)));
}

PyObject* GetIsComplex(PyObject* self, void*) {
  return PyBool_FromLong(IsComplex(Of(self)));
}

PyObject* IsSigned(PyObject* self, void*) {
  const DType dtype = Of(self);
  return PyBool_FromLong(dtype != DType::kBool && dtype != DType::kUInt8);
}

PyObject* GetItemSize(PyObject* self, void*) {
  return PyLong_FromSize_t(ItemSize(Of(self)));
}

// A string means: the global of that name in the object's __module__.
PyObject* Reduce(PyObject* self, PyObject*) { return Name(self, nullptr); }

PyGetSetDef g_properties[] = {
    {"name", Name, nullptr, "The name without a module, \"float32\".", nullptr},
    {"is_floating_point", IsFloatingPoint, nullptr, nullptr, nullptr},
    {"is_complex", GetIsComplex, nullptr, nullptr, nullptr},
    {"is_signed", IsSigned, nullptr, nullptr, nullptr},
    {"itemsize", GetItemSize, nullptr, "Bytes of one element.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef g_methods[] = {
    {"__reduce__", Reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot g_slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(Repr)},
    {Py_tp_getset, g_properties},
    {Py_tp_methods, g_methods},
    {Py_tp_doc, const_cast<char*>("The element type of a tensor.")},
    {0, nullptr},
};
PyType_Spec g_spec = {"holdfast.dtype", sizeof(PyDType), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                          Py_TPFLAGS_IMMUTABLETYPE,
                      g_slots};

}  // namespace

bool AddDTypes(PyObject* module) {
  g_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_spec));
  if (g_type == nullptr) return false;
  PyObject* type = reinterpret_cast<PyObject*>(g_type);
  if (PyModule_AddObjectRef(module, "dtype", type) < 0) return false;
  for (int i = 1; i < kDTypeLimit; ++i) {
    if (!IsValidDType(i)) continue;
    PyDType* object = PyObject_New(PyDType, g_type);
    if (object == nullptr) return false;
    object->dtype = static_cast<DType>(i);
    g_objects[i] = reinterpret_cast<PyObject*>(object);
    const std::string name(DTypeName(object->dtype));
    if (PyModule_AddObjectRef(module, name.c_str(), g_objects[i]) < 0) {
      return false;
    }
  }
  return true;
}

PyObject* DTypeObject(DType dtype) {
  return g_objects[static_cast<int>(dtype)];
}

bool AsDType(PyObject* object, DType* dtype) {
  if (Py_TYPE(object) == g_type) {
    *dtype = Of(object);
    return true;
  }
  if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) {
    *dtype = DType::kComplex128;
  } else if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
    *dtype = DType::kFloat64;
  } else if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) {
    *dtype = DType::kInt64;
  } else if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    *dtype = DType::kBool;
  } else {
    return false;
  }
  return true;
}

}  // namespace holdfast::python
