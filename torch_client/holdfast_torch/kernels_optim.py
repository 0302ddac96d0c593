# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Fused optimizers: all parameters in one op of the daemon's."""

import holdfast
import torch
from holdfast import _C

from holdfast_torch.composites import declare, to_holdfast

_ops = _C.ops


def _numbers(*scalars):
    """Values of scalars on the device, read at once."""
    return torch.stack([s.detach().double().reshape(()) for s in scalars]).tolist()


def _unscaled(grads, grad_scale):
    if grad_scale is None:
        return grads
    # GradScaler wants the gradients that it sees to be the true ones.
    return [g.div_(grad_scale) for g in grads]


def _adam(decoupled):
    def kernel(
        self,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        *,
        lr,
        beta1,
        beta2,
        weight_decay,
        eps,
        amsgrad,
        maximize,
        grad_scale=None,
        found_inf=None,
    ):
        if amsgrad:
            raise NotImplementedError(
                "holdfast has no fused step with amsgrad. Give the optimizer "
                "fused=False."
            )
        # The step's number is one of the op's attributes: PyTorch keeps it on the
        # device, from where it is read.
        extra = [x for x in (found_inf, lr) if isinstance(x, torch.Tensor)]
        steps = _numbers(*state_steps, *extra)
        if isinstance(lr, torch.Tensor):
            lr = steps.pop()
        if found_inf is not None and steps.pop():
            return
        grads = _unscaled(grads, grad_scale)
        for step in sorted(set(steps)):
            own = [i for i, s in enumerate(steps) if s == step]
            lists = (self, grads, exp_avgs, exp_avg_sqs)
            with holdfast.no_grad():
                _ops.adam(
                    *[[to_holdfast(x[i]) for i in own] for x in lists],
                    lr=lr,
                    beta1=beta1,
                    beta2=beta2,
                    eps=eps,
                    weight_decay=weight_decay,
                    decoupled=decoupled,
                    maximize=maximize,
                    step=int(step),
                )

    return kernel


declare("_fused_adam_", "_fused_adam_.tensor_lr")(_adam(False))
declare("_fused_adamw_", "_fused_adamw_.tensor_lr")(_adam(True))


@declare("_fused_sgd_", "_fused_sgd_.tensor_lr")
def fused_sgd(
    self,
    grads,
    momentum_buffer_list,
    *,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
    is_first_step,
    grad_scale=None,
    found_inf=None,
):
    if isinstance(lr, torch.Tensor):
        lr = lr.item()
    if found_inf is not None and found_inf.item():
        return
    grads = _unscaled(grads, grad_scale)
    buffers = momentum_buffer_list if momentum else grads
    with holdfast.no_grad():
        _ops.sgd(
            *[[to_holdfast(x) for x in each] for each in (self, grads, buffers)],
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
            first_step=is_first_step,
        )
