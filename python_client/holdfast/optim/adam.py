# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019)."""

import math

import holdfast
from holdfast import _C

from .optimizer import Optimizer, check_options

_ops = _C.ops


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and of its square.

    weight_decay is added to the gradient. State per parameter: "step" (an int,
    PyTorch's 0-d tensor is accepted), "exp_avg", "exp_avg_sq". `foreach` and
    `fused` are accepted: every step already is. `amsgrad` (Reddi, Kale & Kumar
    2018) keeps the largest mean of squares in "max_exp_avg_sq". `capturable` and
    `differentiable` raise NotImplementedError.
    """

    _decoupled = False

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay: float = 0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=False,
    ):
        check_options(
            type(self).__name__,
            lr,
            weight_decay,
            capturable=capturable,
            differentiable=differentiable,
        )
        if eps < 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _step_group(self, group, params, grads):
        self._amsgrad = group["amsgrad"]
        rows = [self._state_of(param) for param in params]
        for row in rows:
            row["step"] += 1
        steps = {row["step"] for row in rows}
        for step in steps:
            if len(steps) == 1:
                chosen = params, grads, rows
            else:
                # Parameters that missed steps, for want of a gradient.
                chosen = zip(
                    *(t for t in zip(params, grads, rows) if t[2]["step"] == step)
                )
            self._send(group, step, *chosen)

    def _state_of(self, param):
        state = self.state[param]
        if not state:
            state["step"] = 0
            state["exp_avg"] = holdfast.zeros_like(param)
            state["exp_avg_sq"] = holdfast.zeros_like(param)
        if self._amsgrad and "max_exp_avg_sq" not in state:
            state["max_exp_avg_sq"] = holdfast.zeros_like(param)
        return state

    def _send(self, group, step, params, grads, rows):
        beta1, beta2 = group["betas"]
        if group["amsgrad"]:
            self._send_amsgrad(group, step, params, grads, rows)
            return
        _ops.adam(
            list(params),
            list(grads),
            [row["exp_avg"] for row in rows],
            [row["exp_avg_sq"] for row in rows],
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            decoupled=self._decoupled,
            maximize=group["maximize"],
            step=step,
        )

    def _send_amsgrad(self, group, step, params, grads, rows):
        beta1, beta2 = group["betas"]
        lr, decay = group["lr"], group["weight_decay"]
        _ops.optimizer_step(
            list(params),
            list(grads),
            [row["exp_avg"] for row in rows],
            [row["exp_avg_sq"] for row in rows],
            [row["max_exp_avg_sq"] for row in rows],
            algorithm="amsgrad",
            step_size=lr / (1 - beta1**step),
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            correction=math.sqrt(1 - beta2**step),
            shrink=1 - lr * decay if self._decoupled else 1.0,
            weight_decay=0.0 if self._decoupled else decay,
            maximize=group["maximize"],
        )

    def _after_load(self):
        for state in self.state.values():
            step = state.get("step", 0)
            if isinstance(step, holdfast.Tensor):
                step = step.item()
            state["step"] = int(step)


class AdamW(Adam):
    """Adam whose weight_decay shrinks the parameters by lr * weight_decay."""

    _decoupled = True

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        **options,
    ):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)
