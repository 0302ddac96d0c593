// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// From absl::Status to Python exceptions: one class per kind
// (holdfast/errors.py), each subclassing what PyTorch raises there.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_ERRORS_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_ERRORS_H_

#include "absl/status/status.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// Finds the classes of holdfast.errors. False with a Python error set.
bool ImportErrorClasses();

// Raises the exception for `status`; returns nullptr for `return
// RaiseStatus(s)`. For an op that failed on the server the exception carries
// `op`, `op_sequence` and, where known, the user's `filename` and `lineno`.
// A Python error that is already set (an interrupt during a wait) wins.
PyObject* RaiseStatus(const absl::Status& status);

// NotImplementedError's subclass for what PyTorch has and Holdfast has not.
PyObject* RaiseUnsupported(const char* format, ...);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_ERRORS_H_
