# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Adafactor (Shazeer & Stern 2018): Adam's second moment as two vectors."""

import holdfast

from .optimizer import Optimizer


def _check(lr, beta2_decay, eps, d, weight_decay):
    if not 0.0 <= lr:
        raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
    if not 0.0 >= beta2_decay:
        raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
    if eps[0] is not None and not 0.0 <= eps[0]:
        raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
    if not 0.0 <= eps[1]:
        raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
    if not 1.0 <= d:
        raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
    if not 0.0 <= weight_decay:
        raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")


class Adafactor(Optimizer):
    """Steps relative to the size of the weights, clipped, with a factored variance.

    Of a gradient [..., m, n] the state is "row_var" [..., m, 1] and "col_var"
    [..., 1, n]; of a vector "variance"; and "step" (an int; PyTorch's 0-d tensor is
    accepted). `lr` bounds the relative step, `d` clips the update's root mean square.
    `eps[0]` None: the type's own. `foreach` is accepted. Nothing is read back: the
    bounds are computed on the device.
    """

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ):
        _check(lr, beta2_decay, eps, d, weight_decay)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _step_group(self, group, params, grads):
        for param, grad in zip(params, grads):
            if param.is_complex():
                raise RuntimeError("Adafactor does not support complex parameters")
            grad = -grad if group["maximize"] else grad
            self._step_one(group, param, grad, self._state_of(param, grad))

    def _state_of(self, param, grad):
        state = self.state[param]
        if not state:
            state["step"] = 0
            if grad.dim() > 1:
                shape = list(grad.shape)
                state["row_var"] = grad.new_zeros([*shape[:-1], 1])
                state["col_var"] = grad.new_zeros([*shape[:-2], 1, shape[-1]])
            else:
                state["variance"] = holdfast.zeros_like(grad)
        state["step"] += 1
        return state

    def _step_one(self, group, param, grad, state):
        lr, step = group["lr"], state["step"]
        small, smallest_norm = group["eps"]
        if small is None:
            small = holdfast.finfo(param.dtype).eps
        rate = min(lr, step**-0.5)
        size = (param.norm() / param.numel() ** 0.5).clamp(min=smallest_norm)
        if group["weight_decay"] != 0:
            param.mul_(1 - lr * group["weight_decay"])
        weight = step ** group["beta2_decay"]
        if grad.dim() > 1:
            row = state["row_var"].lerp_(_mean_square(grad, -1), weight)
            column = state["col_var"].lerp_(_mean_square(grad, -2), weight)
            variance = row @ column / row.mean(-2, keepdim=True).clamp(min=small)
        else:
            variance = state["variance"].lerp_(grad * grad, weight)
        update = variance.clamp(min=small * small).rsqrt() * grad
        bound = (update.norm() / (update.numel() ** 0.5 * group["d"])).clamp(min=1.0)
        param.sub_(update * (size * rate / bound))

    def _after_load(self):
        for state in self.state.values():
            state["step"] = int(state.get("step", 0))


def _mean_square(grad, dim):
    return (grad * grad).mean(dim, keepdim=True)
