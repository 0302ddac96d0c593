// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Autograd's verbs for Python: grad mode, backward, grad, requires_grad, and
// the objects that Tensor.grad_fn shows.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_AUTOGRAD_BINDING_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_AUTOGRAD_BINDING_H_

#include "client/graph.h"
#include "client/tensor.h"
#include "python_client/src/python.h"

namespace holdfast::python {

bool InitAutograd();

// Marks a leaf. False with a Python error set.
bool SetRequiresGradOf(PyObject* tensor, bool value);

// The node as Python has it; `root` is a tensor whose graph it is in.
PyObject* NewGradFn(RefPtr<client::GraphNode> node, client::Tensor root);

// Module functions: see autograd/__init__.py for what they mean.
PyObject* ShowAs(PyObject* module, PyObject* const* args, Py_ssize_t count,
                 PyObject* keywords);
PyObject* IsGradEnabled(PyObject* module, PyObject* unused);
PyObject* SetGradMode(PyObject* module, PyObject* enabled);
PyObject* IsInferenceMode(PyObject* module, PyObject* none);
PyObject* SetInferenceMode(PyObject* module, PyObject* on);
PyObject* Backward(PyObject* module, PyObject* args);
PyObject* Grad(PyObject* module, PyObject* args);
PyObject* DependsOnOthers(PyObject* module, PyObject* args);
PyObject* SetNodeAttributes(PyObject* module, PyObject* hook);
PyObject* SavedOf(PyObject* module, PyObject* node);
PyObject* LeafOf(PyObject* module, PyObject* node);
PyObject* IdentityOf(PyObject* module, PyObject* tensor);
PyObject* RetainGrad(PyObject* tensor, PyObject* unused);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_AUTOGRAD_BINDING_H_
