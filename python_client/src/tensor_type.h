// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// holdfast.Tensor: the Python object around a client::Tensor. A heap type
// that programs may subclass and patch; its number protocol goes straight to
// the session (tensor_number.cc), the rest is in tensor_properties.cc,
// tensor_methods.cc, the op table (op_function.h) and the package's Python.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_TENSOR_TYPE_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_TENSOR_TYPE_H_

#include <vector>

#include "absl/base/optimization.h"
#include "client/fork_guard.h"
#include "client/tensor.h"
#include "python_client/src/default_session.h"
#include "python_client/src/python.h"

namespace holdfast::python {

struct PyTensor {
  PyObject_HEAD client::Tensor
      tensor;  // never null once an object is visible to Python
  PyObject* dict;
  PyObject* weaklist;
  PyObject* grad;  // the object last returned for .grad, so that it is stable
};

extern PyTypeObject* g_tensor_type;

// The subclass whose objects are no operands of ops: holdfast.sparse's tensors,
// which programs take for tensors and which have no strides. Null until that
// module is imported.
extern PyTypeObject* g_sparse_type;

inline bool IsSparse(PyObject* object) {
  return g_sparse_type != nullptr &&
         PyType_IsSubtype(Py_TYPE(object), g_sparse_type) != 0;
}

// Whether ops can take it.
inline bool IsTensor(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return type == g_tensor_type ||
         (PyType_IsSubtype(type, g_tensor_type) != 0 && !IsSparse(object));
}

// _C.set_sparse_type(subclass of Tensor); once.
PyObject* SetSparseType(PyObject*, PyObject* type);

// What is known of the tensor without the daemon: its spec and marks.
// REQUIRES: IsTensor(object).
inline const client::Tensor& KnownOf(PyObject* object) {
  return reinterpret_cast<PyTensor*>(object)->tensor;
}

// The tensor, in a session of this process: in a forked one this may wait, and
// release the GIL, when a tensor of the parent's is first used.
// REQUIRES: IsTensor(object).
inline const client::Tensor& TensorOf(PyObject* object) {
  if (ABSL_PREDICT_FALSE(client::ForkGeneration() != 0)) InheritTensor(object);
  return KnownOf(object);
}

// A new Python object of exactly type Tensor; nullptr with an error set.
PyObject* WrapTensor(client::Tensor tensor);
// The same for a subclass.
PyObject* WrapTensorAs(PyTypeObject* type, client::Tensor tensor);

// Creates the type with the slots of the other files and adds it.
bool AddTensorType(PyObject* module);

// ---- contributed by the other files

void AppendNumberSlots(std::vector<PyType_Slot>* slots);
PyGetSetDef* TensorProperties();
void AppendTensorMethods(std::vector<PyMethodDef>* methods);
// Tensor(...), PyTorch's legacy constructor.
PyObject* TensorNew(PyTypeObject* type, PyObject* args, PyObject* kwargs);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_TENSOR_TYPE_H_
