# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Hooks on the gradients of a module's inputs and outputs.

The tensors that go into a call, and those that come out, pass through identities
whose backward sees the gradients; between the two lies the module.
"""

import holdfast
from holdfast.autograd.function import Function

from . import global_hooks


class _Watch(Function):
    """The identity; `arrived(gradients)` returns the gradients to go on with."""

    @staticmethod
    def forward(ctx, arrived, *tensors):
        ctx.arrived = arrived
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx, *gradients):
        return (None, *ctx.arrived(gradients))


def _watched(values, arrived):
    """The values with their differentiable tensors watched, and those's places."""
    places = [
        i
        for i, x in enumerate(values)
        if isinstance(x, holdfast.Tensor) and x.requires_grad
    ]
    if not (places and holdfast.is_grad_enabled()):
        return values, []
    values = list(values)
    watched = _Watch.apply(arrived, *[values[i] for i in places])
    for i, tensor in zip(places, watched):
        values[i] = tensor
    return tuple(values), places


def _spread(places, gradients, count):
    """One gradient, or None, per value."""
    spread = [None] * count
    for i, gradient in zip(places, gradients):
        spread[i] = gradient
    return tuple(spread)


def _changed(result, gradients, what):
    """What a hook makes of the gradients; None leaves them."""
    if result is None:
        return gradients
    if isinstance(result, holdfast.Tensor):
        result = (result,)
    if len(result) != len(gradients):
        raise RuntimeError(
            f"Backward hook returned an invalid number of {what}, got {len(result)}, "
            f"but expected {len(gradients)}"
        )
    return tuple(result)


class BackwardHooks:
    """The backward hooks of one call of a module."""

    def __init__(self, module):
        self._module = module
        every = global_hooks
        self._hooks = [*every.BACKWARD.values(), *module._backward_hooks.values()]
        self._pre_hooks = [
            *every.BACKWARD_PRE.values(),
            *module._backward_pre_hooks.values(),
        ]
        self._outputs = None  # their gradients, once they came by

    def watch_inputs(self, args):
        """The arguments to call forward with."""
        self._count_in = len(args)
        self._inputs = []
        if self._hooks:
            args, self._inputs = _watched(args, self._input_gradients)
        return args

    def watch_outputs(self, result):
        """The result to hand out: of a tensor, or a tuple with some."""
        if not (self._hooks or self._pre_hooks):
            return result
        values = result if isinstance(result, tuple) else (result,)
        self._count_out = len(values)
        watched, self._out_places = _watched(values, self._output_gradients)
        if not self._out_places:
            return result
        if not isinstance(result, tuple):
            return watched[0]
        make = getattr(type(result), "_make", tuple)
        return make(watched)

    def _output_gradients(self, gradients):
        outputs = _spread(self._out_places, gradients, self._count_out)
        for hook in self._pre_hooks:
            outputs = _changed(hook(self._module, outputs), outputs, "grad_output")
        self._outputs = outputs
        if not self._inputs:
            nothing = (None,) * self._count_in
            for hook in self._hooks:
                result = hook(self._module, nothing, outputs)
                if result is not None and any(g is not None for g in result):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient "
                        "should always return None or None for all gradients."
                    )
        return tuple(outputs[i] for i in self._out_places)

    def _input_gradients(self, gradients):
        if self._outputs is None:
            raise RuntimeError(
                "Module backward hook for grad_input is called before the grad_output "
                "one. This happens because the gradient in your nn.Module flows to the "
                "Module's input without passing through the Module's output."
            )
        inputs = _spread(self._inputs, gradients, self._count_in)
        for hook in self._hooks:
            result = hook(self._module, inputs, self._outputs)
            inputs = _changed(result, inputs, "grad_input")
        self._outputs = None
        return tuple(inputs[i] for i in self._inputs)
