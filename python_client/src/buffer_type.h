// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// TensorBuffer: a tensor's elements as an object with Python's buffer
// protocol, from which NumPy makes an array. Over shared memory it is the
// tensor's own memory and keeps the storage alive; over gRPC it is a copy.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_BUFFER_TYPE_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_BUFFER_TYPE_H_

#include "client/session.h"
#include "python_client/src/python.h"

namespace holdfast::python {

bool InitBufferType();

// Waits for the tensor. A copy is read-only.
PyObject* NewBuffer(const client::Tensor& tensor);
// Waits for the tensor, and shows its bytes in one dimension, whatever their
// type. ValueError if it is not contiguous.
PyObject* NewByteBuffer(const client::Tensor& tensor);
PyObject* NewByteBuffer(const client::Tensor& tensor, client::ReadValue value);
// Around memory that is already there (Session::PutShared).
PyObject* NewBuffer(const client::Tensor& tensor, client::ReadValue value);

// The tensor whose own memory `array` looks at, through any chain of views,
// and the address of that tensor's first element; null if there is none.
client::Tensor TensorBehind(PyObject* array, const char** first_element);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_BUFFER_TYPE_H_
