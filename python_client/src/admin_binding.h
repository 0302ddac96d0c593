// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What Python says to a daemon beside sessions: credentials, and requests of
// its administrator.
// Thread-safety: with the GIL.
#ifndef HOLDFAST_PYTHON_CLIENT_ADMIN_BINDING_H_
#define HOLDFAST_PYTHON_CLIENT_ADMIN_BINDING_H_

#include <vector>

#include "client/session.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// (token, ca, certificate, key, allow_plaintext_token): four str and a bool.
// False with an exception set: it is something else.
bool ReadCredentials(PyObject* tuple, client::Credentials* credentials);

void AppendAdminFunctions(std::vector<PyMethodDef>* functions);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_ADMIN_BINDING_H_
