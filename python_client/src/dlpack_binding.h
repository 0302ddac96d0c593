// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory of GPUs that other libraries of the process see as well:
// holdfast/device_arrays.py is made of it.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_DLPACK_BINDING_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_DLPACK_BINDING_H_

#include <vector>

#include "python_client/src/python.h"

namespace holdfast::python {

void AppendDlpackFunctions(std::vector<PyMethodDef>* functions);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_DLPACK_BINDING_H_
