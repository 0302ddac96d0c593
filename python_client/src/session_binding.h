// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sessions for Python: the Session type and the module's functions.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_SESSION_BINDING_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_SESSION_BINDING_H_

#include <memory>
#include <vector>

#include "client/session.h"
#include "python_client/src/default_session.h"
#include "python_client/src/python.h"

namespace holdfast::python {

bool AddSessionType(PyObject* module);

PyObject* WrapSession(std::shared_ptr<client::Session> session);

// connect, disconnect, ... of the module.
void AppendSessionFunctions(std::vector<PyMethodDef>* functions);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_SESSION_BINDING_H_
