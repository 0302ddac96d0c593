# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Stochastic gradient descent with momentum (Sutskever et al. 2013)."""

import holdfast
from holdfast import _C

from .optimizer import Optimizer, check_options

_ops = _C.ops


class SGD(Optimizer):
    """p -= lr * v, where v = momentum * v + (1 - dampening) * g.

    g is the gradient plus weight_decay * p; `nesterov` uses g + momentum * v
    instead of v; `maximize` goes up. The first v is g. State per parameter:
    "momentum_buffer". `foreach` and `fused` are accepted: every step already is.
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        check_options("SGD", lr, weight_decay, differentiable=differentiable)
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _step_group(self, group, params, grads):
        if group["momentum"] == 0:
            self._send(group, params, grads, grads, False)
            return
        state = self.state
        buffers = [state[param].get("momentum_buffer") for param in params]
        if not any(buffer is None for buffer in buffers):
            self._send(group, params, grads, buffers, False)
            return
        fresh, started = ([], [], []), ([], [], [])
        for row in zip(params, grads, buffers):
            param, grad, buffer = row
            if buffer is None:
                # Written by the step, which does not read it.
                buffer = holdfast.zeros_like(param)
                state[param]["momentum_buffer"] = buffer
                row, lists = (param, grad, buffer), fresh
            else:
                lists = started
            for values, value in zip(lists, row):
                values.append(value)
        self._send(group, *fresh, True)
        if started[0]:
            self._send(group, *started, False)

    @staticmethod
    def _send(group, params, grads, buffers, first_step):
        _ops.sgd(
            params,
            grads,
            buffers,
            lr=group["lr"],
            momentum=group["momentum"],
            dampening=group["dampening"],
            weight_decay=group["weight_decay"],
            nesterov=group["nesterov"],
            maximize=group["maximize"],
            first_step=first_step,
        )
