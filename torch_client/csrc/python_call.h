// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// An operator's kernel in Python.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <Python.h>

namespace holdfast_torch {

// Calls `function` with the operator's arguments, which lie on the stack, and
// leaves its results there. Takes the GIL. Throws.
void CallPython(PyObject* function, const c10::OperatorHandle& op,
                torch::jit::Stack* stack);

}  // namespace holdfast_torch
