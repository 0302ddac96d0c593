// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The sessions of this process: the one where new tensors are made, which the
// first op opens if nobody called connect(), and those that a forked process
// opens for the tensors it inherited.
//
// A session belongs to the process that opened it. In a child the first op
// opens one of the child's own, on the same daemon, and a tensor of the
// parent's becomes a copy there when it is first used.
// Thread-safety: with the GIL held, which connecting releases.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_DEFAULT_SESSION_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_DEFAULT_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/session.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// Null with an error set.
std::shared_ptr<client::Session> OpenSession(
    const client::ConnectOptions& options);
// Those of this process that are still there.
std::vector<std::shared_ptr<client::Session>> OpenedSessions();

// The default session, null if there is none.
std::shared_ptr<client::Session> CurrentSession();
void SetCurrentSession(std::shared_ptr<client::Session> session);

// The default session if an op opened it, not connect(): the program has not
// chosen it. Null if there is none.
std::shared_ptr<client::Session> ImplicitSession();

// The default session; connects on first use. nullptr with an error set.
client::Session* DefaultSession();

// (callable or None): asked with the address of the session that is about to
// be opened ("": nobody named one) for (address, credentials as ReadCredentials
// takes them), which are used instead. METH_O.
PyObject* SetAddressResolver(PyObject*, PyObject* resolver);

// What the default session is opened with, once somebody needs it.
struct NextSession {
  std::string address;  // "": as connect() finds it
  std::optional<uint64_t> seed;
  std::string parent_token;  // ConnectOptions'; "": this is no worker
};
void PrepareSession(NextSession next);

// REQUIRES: this process was forked. The tensor of a Python Tensor, if it is
// the parent's, becomes a copy in a session of this process; waits for the
// daemon. Where that fails it stays the parent's, whose session then says why.
void InheritTensor(PyObject* object);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_DEFAULT_SESSION_H_
