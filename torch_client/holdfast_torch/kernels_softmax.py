# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Softmax."""

from holdfast import _C

from holdfast_torch.composites import declare_holdfast as composite

_ops = _C.ops


@composite("_softmax")
def _softmax(self, dim, half_to_float):
    return _ops.softmax(self, dim, dtype=_C.float32 if half_to_float else None)


@composite("_log_softmax")
def _log_softmax(self, dim, half_to_float):
    return _ops.log_softmax(self, dim, dtype=_C.float32 if half_to_float else None)


@composite("_softmax_backward_data")
def _softmax_backward_data(grad_output, output, dim, input_dtype):
    return _ops.to(_ops.softmax_backward(grad_output, output, dim), input_dtype)


@composite("_log_softmax_backward_data")
def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    return _ops.to(_ops.log_softmax_backward(grad_output, output, dim), input_dtype)
