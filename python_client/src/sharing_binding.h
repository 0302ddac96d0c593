// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensors that several processes have: holdfast.multiprocessing is made of it.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_SHARING_BINDING_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_SHARING_BINDING_H_

#include "python_client/src/python.h"

namespace holdfast::python {

// (tensor, hold) -> the token by which another session opens its storage.
PyObject* Share(PyObject*, PyObject* args);
// (token, dtype, shape, strides, offset, release_hold) -> Tensor of the default
// session.
PyObject* OpenShared(PyObject*, PyObject* args);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_SHARING_BINDING_H_
