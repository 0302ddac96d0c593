# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""SparseAdam: Adam that leaves alone what a gradient does not name."""

import math

import holdfast

from .algorithm import check_betas
from .optimizer import Optimizer


class SparseAdam(Optimizer):
    """Adam in lazy form, for large tables of which a step touches a few rows.

    Moments and parameters change only where the gradient has entries: gradients of
    `Embedding(sparse=True)` are dense here, so these are the rows [dim 0] that are not
    all zero. State: "step" (an int), "exp_avg", "exp_avg_sq".
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize}
        super().__init__(params, defaults)
        for group in self.param_groups:
            if any(param.is_complex() for param in group["params"]):
                raise ValueError("SparseAdam does not support complex parameters")

    def _step_group(self, group, params, grads):
        beta1, beta2 = group["betas"]
        for param, grad in zip(params, grads):
            state = self.state[param]
            if not state:
                state["step"] = 0
                state["exp_avg"] = holdfast.zeros_like(param)
                state["exp_avg_sq"] = holdfast.zeros_like(param)
            state["step"] += 1
            step = state["step"]
            named = _named(grad)
            grad = -grad if group["maximize"] else grad
            mean, square = state["exp_avg"], state["exp_avg_sq"]
            mean.copy_(holdfast.where(named, mean.lerp(grad, 1 - beta1), mean))
            square.copy_(
                holdfast.where(named, square.lerp(grad * grad, 1 - beta2), square)
            )
            size = group["lr"] * math.sqrt(1 - beta2**step) / (1 - beta1**step)
            update = mean / (square.sqrt() + group["eps"]) * size
            param.sub_(holdfast.where(named, update, holdfast.zeros_like(update)))


def _named(grad):
    """A mask, that broadcasts, of the rows that the gradient has entries for."""
    if grad.dim() < 2:
        return grad != 0
    rows = (grad != 0).flatten(1).any(1)
    return rows.reshape(-1, *(1,) * (grad.dim() - 1))
