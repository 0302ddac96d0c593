// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Named tensors of the daemon: holdfast/named_tensors.py is made of these. All
// use the default session and wait.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_PUBLISH_BINDING_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_PUBLISH_BINDING_H_

#include "python_client/src/python.h"

namespace holdfast::python {

// A version is told as a tuple: name, owner, version, number of tensors, bytes,
// durable, writable, saved, time, readable by all, readers.

// (name, keys, tensors, structure, durable, writable, readable by all,
// readers) -> version; keys, tensors and readers are tuples.
PyObject* Publish(PyObject*, PyObject* args);
// (name, version or 0, owner or "") -> version, structure, [(key, tensor,
// requires_grad)]
PyObject* Lookup(PyObject*, PyObject* args);
// (name)
PyObject* Unpublish(PyObject*, PyObject* args);
// () -> [version]
PyObject* ListPublished(PyObject*, PyObject*);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_PUBLISH_BINDING_H_
