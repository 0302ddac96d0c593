# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What distributions do with their parameters: broadcasting, probabilities and
their logarithms, values that are computed when first asked for, and the random
numbers that samples begin with.

Those come from the functions and methods that programs see: one that a program
replaces (by NumPy's numbers, say) takes part in sampling, as in PyTorch."""

import functools
import numbers

import holdfast
from holdfast import _C

_ops = _C.ops
Size, Tensor = _C.Size, _C.Tensor

EULER = 0.57721566490153286060


def broadcast_all(*values):
    """The values as tensors of one shape. Numbers become tensors of the first
    tensor's type, float32 if there is none. ValueError for anything else."""
    for value in values:
        if not isinstance(value, (Tensor, numbers.Number)):
            raise ValueError(
                "Input arguments must all be instances of numbers.Number or "
                f"holdfast.Tensor. Got {type(value).__name__}."
            )
    tensors = [value for value in values if isinstance(value, Tensor)]
    dtype = tensors[0].dtype if tensors else _C.default_dtype()
    return holdfast.broadcast_tensors(
        *(
            value if isinstance(value, Tensor) else holdfast.tensor(value, dtype=dtype)
            for value in values
        )
    )


def broadcast_scalars(*values):
    """(tensors, batch shape) of parameters that are one number per batch entry."""
    tensors = broadcast_all(*values)
    return tensors, Size(tensors[0].shape)


def require_one(first, second, names):
    """ValueError unless exactly one of two parameters is given."""
    if (first is None) == (second is None):
        raise ValueError(f"Either {names} must be specified, but not both.")


class lazy_property:
    """A method as an attribute, computed on first use, inside the graph."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with holdfast.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def logits_to_probs(logits, is_binary=False):
    """Probabilities of log odds (binary), or along the last dimension."""
    return _ops.sigmoid(logits) if is_binary else _ops.softmax(logits, -1)


def clamp_probs(probs):
    """Away from 0 and 1 by one rounding step, so that logarithms are finite."""
    eps = holdfast.finfo(probs.dtype).eps
    return _ops.clamp(probs, eps, 1 - eps)


def probs_to_logits(probs, is_binary=False):
    """The inverse of logits_to_probs."""
    safe = clamp_probs(probs)
    if is_binary:
        return _ops.log(safe) - _ops.log1p(-safe)
    return _ops.log(safe)


def sum_rightmost(value, count):
    """Summed over the last `count` dimensions."""
    return _ops.sum(value, list(range(-count, 0))) if count else value


def uniform(shape, like):
    """Uniform numbers in [0, 1) of the tensor's type."""
    return holdfast.rand(tuple(shape), dtype=like.dtype)


def open_uniform(shape, like):
    """Uniform numbers in (0, 1): a 0 becomes the smallest normal number."""
    return _ops.clamp(uniform(shape, like), holdfast.finfo(like.dtype).tiny, None)


def standard_normal(shape, like):
    """Standard normal numbers of the tensor's type."""
    return empty(shape, like).normal_()


def empty(shape, like):
    """Room for random numbers of the tensor's type."""
    return holdfast.empty(tuple(shape), dtype=like.dtype)
