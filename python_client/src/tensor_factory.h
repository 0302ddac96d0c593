// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensors from Python data: arrays and other buffers, nested lists, numbers.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_TENSOR_FACTORY_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_TENSOR_FACTORY_H_

#include <optional>
#include <vector>

#include "client/session.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// A new tensor with a copy of `data`; the type is the data's unless given.
// Null with a Python error set.
client::Tensor MakeTensor(PyObject* data, std::optional<DType> dtype);

// The same for nested sequences and numbers only (nested_list.cc).
client::Tensor MakeTensorFromList(PyObject* data, std::optional<DType> dtype);

bool IsNumpyArray(PyObject* object);

// tensor, as_tensor, from_numpy, empty_shared of the module.
void AppendFactoryFunctions(std::vector<PyMethodDef>* functions);

// A Python complex as a tensor without dimensions, as wide as `like` needs: so
// that it promotes as PyTorch's complex scalars do.
client::Tensor MakeComplexScalar(PyObject* number, DType like);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_TENSOR_FACTORY_H_
