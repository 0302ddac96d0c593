// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/tensor_type.h"

#include <cstddef>
#include <new>

#include "python_client/src/op_function.h"
#include "python_client/src/overrides.h"

namespace holdfast::python {

PyTypeObject* g_tensor_type;
PyTypeObject* g_sparse_type;

namespace {

using client::Tensor;

// Memory of dead tensors, kept because a program makes and drops one tensor
// per op.
constexpr int kFreeListSize = 128;
PyTensor* g_free[kFreeListSize];
int g_num_free = 0;

int Traverse(PyObject* self, visitproc visit, void* arg) {
  auto* object = reinterpret_cast<PyTensor*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(object->dict);
  Py_VISIT(object->grad);
  return 0;
}

int Clear(PyObject* self) {
  auto* object = reinterpret_cast<PyTensor*>(self);
  Py_CLEAR(object->dict);
  Py_CLEAR(object->grad);
  return 0;
}

void Dealloc(PyObject* self) {
  auto* object = reinterpret_cast<PyTensor*>(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (object->weaklist != nullptr) PyObject_ClearWeakRefs(self);
  Clear(self);
  object->tensor.~Tensor();
  if (type == g_tensor_type && g_num_free < kFreeListSize) {
    g_free[g_num_free++] = object;
  } else {
    PyObject_GC_Del(self);
  }
  Py_DECREF(type);
}

PyMemberDef g_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weaklist), READONLY,
     nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

PyObject* WrapTensor(Tensor tensor) {
  PyTensor* object;
  if (g_num_free > 0) {
    object = g_free[--g_num_free];
    PyObject_Init(reinterpret_cast<PyObject*>(object), g_tensor_type);
  } else {
    object = PyObject_GC_New(PyTensor, g_tensor_type);
    if (object == nullptr) return nullptr;
  }
  new (&object->tensor) Tensor(std::move(tensor));
  object->dict = nullptr;
  object->weaklist = nullptr;
  object->grad = nullptr;
  PyObject_GC_Track(object);
  return reinterpret_cast<PyObject*>(object);
}

PyObject* WrapTensorAs(PyTypeObject* type, Tensor tensor) {
  if (type == g_tensor_type) return WrapTensor(std::move(tensor));
  // Zero-initialised, which is a valid null Tensor.
  PyObject* object = PyType_GenericAlloc(type, 0);
  if (object == nullptr) return nullptr;
  new (&reinterpret_cast<PyTensor*>(object)->tensor) Tensor(std::move(tensor));
  NoteSubclass(type);
  return object;
}

PyObject* SetSparseType(PyObject*, PyObject* type) {
  if (!PyType_Check(type) || g_sparse_type != nullptr ||
      PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), g_tensor_type) ==
          0) {
    PyErr_SetString(PyExc_TypeError,
                    "set_sparse_type() takes a subclass of Tensor, once");
    return nullptr;
  }
  Py_INCREF(type);
  g_sparse_type = reinterpret_cast<PyTypeObject*>(type);
  Py_RETURN_NONE;
}

bool AddTensorType(PyObject* module) {
  // The type keeps pointers into these for as long as the process lives.
  static auto* methods = new std::vector<PyMethodDef>;
  AppendOpMethods(methods);
  AppendTensorMethods(methods);
  methods->push_back({nullptr, nullptr, 0, nullptr});

  std::vector<PyType_Slot> slots = {
      {Py_tp_new, reinterpret_cast<void*>(TensorNew)},
      {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(Clear)},
      {Py_tp_members, g_members},
      {Py_tp_getset, TensorProperties()},
      {Py_tp_methods, methods->data()},
      {Py_tp_doc,
       const_cast<char*>("A tensor that lives on a Holdfast daemon.")},
  };
  AppendNumberSlots(&slots);
  slots.push_back({0, nullptr});
  PyType_Spec spec = {
      "holdfast.Tensor", sizeof(PyTensor), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
      slots.data()};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) return false;
  g_tensor_type = reinterpret_cast<PyTypeObject*>(type);
  return PyModule_AddObjectRef(module, "Tensor", type) == 0;
}

}  // namespace holdfast::python
