// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/sharing_binding.h"

#include <string>
#include <utility>

#include "client/session.h"
#include "python_client/src/argument.h"
#include "python_client/src/dtype_type.h"
#include "python_client/src/errors.h"
#include "python_client/src/read.h"
#include "python_client/src/session_binding.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {

using client::Session;
using client::Tensor;

PyObject* Share(PyObject*, PyObject* args) {
  PyObject* object = nullptr;
  int hold = 0;
  if (!PyArg_ParseTuple(args, "Op", &object, &hold)) return nullptr;
  if (!IsTensor(object)) {
    PyErr_SetString(PyExc_TypeError, "share() takes a Tensor");
    return nullptr;
  }
  const Tensor tensor = TensorOf(object);
  absl::StatusOr<std::string> token;
  {
    ScopedGilRelease unlocked;
    token = tensor->session()->Share(tensor, hold != 0, Interrupted);
  }
  if (!token.ok()) return RaiseStatus(token.status());
  return PyBytes_FromStringAndSize(token->data(),
                                   static_cast<Py_ssize_t>(token->size()));
}

PyObject* OpenShared(PyObject*, PyObject* args) {
  PyObject *token = nullptr, *dtype = nullptr, *shape = nullptr,
           *strides = nullptr;
  TensorSpec spec;
  long long offset = 0;
  int release_hold = 0, device = 0;
  if (!PyArg_ParseTuple(args, "SOO!O!Lp|i", &token, &dtype, &PyTuple_Type,
                        &shape, &PyTuple_Type, &strides, &offset, &release_hold,
                        &device)) {
    return nullptr;
  }
  if (!AsDType(dtype, &spec.dtype) ||
      AsInts(shape, 0, &spec.shape) != Converted::kYes ||
      AsInts(strides, 0, &spec.strides) != Converted::kYes ||
      spec.shape.size() != spec.strides.size()) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_TypeError,
                      "a dtype and as many strides as sizes are expected");
    }
    return nullptr;
  }
  spec.offset = offset;
  spec.device = static_cast<int8_t>(device);
  Session* session = DefaultSession();
  if (session == nullptr) return nullptr;
  char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(token, &bytes, &size) < 0) return nullptr;
  absl::StatusOr<Tensor> tensor =
      session->OpenShared(std::string(bytes, static_cast<size_t>(size)),
                          std::move(spec), release_hold != 0);
  if (!tensor.ok()) return RaiseStatus(tensor.status());
  return WrapTensor(*std::move(tensor));
}

}  // namespace holdfast::python
