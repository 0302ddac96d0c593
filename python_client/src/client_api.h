// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// _C._client_api: the client's core for other extension modules
// (torch_client/client_api.h).
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_CLIENT_API_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_CLIENT_API_H_

#include "python_client/src/python.h"

namespace holdfast::python {

// False with a Python error set.
bool AddClientApi(PyObject* module);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_CLIENT_API_H_
