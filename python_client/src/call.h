// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Op calls on behalf of Python: from specs and tensors that are already
// converted to new Python objects. Every op of the extension goes through
// here.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_CALL_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_CALL_H_

#include "absl/types/span.h"
#include "client/session.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// Whether ops are recorded for backward: PyTorch's grad mode, per thread.
bool GradEnabled();
// Returns the mode before.
bool SetGradEnabled(bool enabled);

// The parsed row; cheaper than GetOp on the path of every operator.
const OpSchema& SchemaOf(OpId id);

// Runs an op whose results the caller wants as client tensors. `outputs` has
// num_outputs entries (1 for in-place). False with a Python error set.
// `random`: what a random op draws from; null: from the session's own stream.
bool Apply(const Attrs& attrs, absl::Span<const client::Tensor> inputs,
           bool inplace, absl::Span<client::Tensor> outputs,
           client::RandomStream* random = nullptr);

// Runs an op and wraps its results: one tensor, a tuple, or None. With
// `inplace`, `self` is the Python object of inputs[0] and the result.
PyObject* Call(const Attrs& attrs, absl::Span<const client::Tensor> inputs,
               bool inplace, PyObject* self,
               client::RandomStream* random = nullptr);

// One input, no attributes, one output; null with a Python error set.
client::Tensor ApplyUnary(OpId id, const client::Tensor& input);
// The same elements in another type.
client::Tensor ApplyTo(const client::Tensor& input, DType dtype);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_CALL_H_
