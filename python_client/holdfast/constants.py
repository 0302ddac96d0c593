# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Results that do not change with their inputs, and are in the graph all the same."""

from holdfast import _C

_ops = _C.ops


def in_graph_of(result, *inputs):
    """result with the gradient zero for each tensor among inputs that requires one:
    backward through a rounded number, say, is no error in PyTorch."""
    if not _C.is_grad_enabled():
        return result
    for input in inputs:
        if isinstance(input, _C.Tensor) and input.requires_grad:
            # The sum is never chosen, so that a NaN in it does no harm.
            result = _ops.where(_ops.full((), True), result, _ops.sum(input))
    return result
