// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads: the only waits. They release the GIL and end with KeyboardInterrupt
// on Ctrl-C, after which the session goes on.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_READ_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_READ_H_

#include "client/session.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// Whether a signal handler raised; the callback of the session's waits.
bool Interrupted();

// The same of waits that cannot run Python code (client/interrupt.h), where the
// calling thread has said that it holds the GIL, or that it has released it, in
// which case only waits without a lock held are interrupted.
bool InterruptPending(bool locked);
bool& HoldsGilInCall();
bool& ReleasedGilInCall();

// Waits until the sizes of a tensor are known, which they are at once unless
// they depend on data. Before anything that looks at them. False with a Python
// error set, which is that of the op that makes the tensor.
bool WaitForSizes(const client::Tensor& tensor);
inline bool Settle(const client::Tensor& tensor) {
  return !tensor->pending() || WaitForSizes(tensor);
}

// Reads a tensor. The result's spec always describes its data: row-major for
// a copy, the storage's strides and offset for a placed read. False with a
// Python error set.
bool ReadTensor(const client::Tensor& tensor, bool place,
                client::ReadValue* value);

// Where the tensor's memory is mapped (Session::Address), as a Python int. Null
// with a Python error set.
PyObject* ReadAddress(const client::Tensor& tensor);

// One element as bool, int or float; ValueError-like for other sizes, in
// PyTorch's words.
PyObject* ReadItem(const client::Tensor& tensor);

// Nested lists of Python numbers.
PyObject* ReadList(const client::Tensor& tensor);

// One element of type `dtype` at `data`.
PyObject* ElementToPython(DType dtype, const void* data);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_READ_H_
