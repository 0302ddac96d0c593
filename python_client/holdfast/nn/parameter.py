# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensors that a module owns: parameters (trained) and buffers (state)."""

import holdfast
from holdfast import _C
from holdfast._printing import tensor_text


class Parameter(holdfast.Tensor):
    """A tensor that a Module lists among its parameters when it is assigned.

    `Parameter(data=None, requires_grad=True)` shares `data`'s storage and is a
    leaf of the autograd graph. Only floating-point data can require gradients.
    """

    # What is computed with parameters are plain tensors.
    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = holdfast.empty(0)
        if not isinstance(data, holdfast.Tensor):
            raise TypeError(
                f"Parameter data must be a Tensor. Got {type(data).__name__}."
            )
        return holdfast.Tensor._make_subclass(cls, data.detach(), requires_grad)

    def __init__(self, data=None, requires_grad=True):
        pass

    def __repr__(self):
        return "Parameter containing:\n" + tensor_text(self)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return type(self), (self.detach(), self.requires_grad)


class Buffer(holdfast.Tensor):
    """A tensor that a Module registers as a buffer when it is assigned.

    `Buffer(data=None, *, persistent=True)`: a persistent buffer is part of the
    module's state_dict.
    """

    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = holdfast.empty(0)
        self = holdfast.Tensor._make_subclass(
            cls, data.detach(), bool(data.requires_grad)
        )
        self.persistent = persistent
        return self

    def __init__(self, data=None, *, persistent=True):
        pass

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(
                self.detach().clone(), persistent=self.persistent
            )
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return _rebuild_buffer, (type(self), self.detach(), self.persistent)


def _rebuild_buffer(cls, data, persistent):
    return cls(data, persistent=persistent)
