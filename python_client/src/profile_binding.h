// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A session's profile for holdfast.profiler, as tuples.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_PROFILE_BINDING_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_PROFILE_BINDING_H_

#include "client/session.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// (shapes, max_records): begins a profile of the session.
PyObject* StartProfile(client::Session& session, PyObject* args);
// Ends it: a dict of `submissions`, a list of (kind, name, sequence, thread,
// begin_ns, end_ns); `executions`, a list of (kind, name, sequence,
// forward_sequence, in_backward, failed, start_ns, duration_ns, waited_ns,
// output_bytes, input_shapes); and numbers. See client/profile.h.
PyObject* StopProfile(client::Session& session);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_PROFILE_BINDING_H_
