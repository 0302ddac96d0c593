# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Muon: momentum whose update is made orthogonal (Jordan et al. 2024)."""

import math

import holdfast

from .optimizer import Optimizer

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
# Of an update [rows, columns]: what the learning rate is multiplied with.
_ADJUSTMENTS = {
    "original": lambda rows, columns: math.sqrt(max(1, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
    "spectral_unclamped": lambda rows, columns: math.sqrt(rows / columns),
}


def _orthogonal(update, coefficients, steps, eps):
    """About U V^T of update = U S V^T [rows, columns], by Newton and Schulz in
    bfloat16: the singular values end between 0.5 and 1.5."""
    if steps >= 100:
        raise ValueError(
            "Number of steps must be less than 100 for computational efficiency"
        )
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = update.size(0) > update.size(1)
    x = update.bfloat16()
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = holdfast.addmm(
            x, holdfast.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a
        )
    return x.T if tall else x


class Muon(Optimizer):
    """For the weights [rows, columns] of hidden layers; AdamW is for the others.

    v = momentum * v + (1 - momentum) * g; the step goes along the orthogonal factor of
    v (with `nesterov`, of g and v mixed the same way), times `lr` as adjust_lr_fn says:
    "original" (None, too), "match_rms_adamw", "spectral_unclamped". weight_decay
    shrinks the weights by lr * weight_decay. State: "momentum_buffer". ValueError for
    tensors that are no matrices.
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=_COEFFICIENTS,
        eps=1e-7,
        ns_steps=5,
        adjust_lr_fn=None,
    ):
        for name, value in (
            ("Learning rate", lr),
            ("momentum", momentum),
            ("weight decay", weight_decay),
        ):
            if not 0.0 <= value:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn is not None and adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(
                f"Adjust learning rate function {adjust_lr_fn} is not supported"
            )
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter "
                        f"with size: {param.size()}"
                    )

    def _step_group(self, group, params, grads):
        adjust = _ADJUSTMENTS[group["adjust_lr_fn"] or "original"]
        momentum, lr = group["momentum"], group["lr"]
        for param, grad in zip(params, grads):
            if param.is_complex():
                raise RuntimeError("Muon does not support complex parameters")
            state = self.state[param]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = holdfast.zeros_like(grad)
            buffer = state["momentum_buffer"].lerp_(grad, 1 - momentum)
            update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
            update = _orthogonal(
                update, group["ns_coefficients"], group["ns_steps"], group["eps"]
            )
            param.mul_(1 - lr * group["weight_decay"])
            param.sub_(update.to(param.dtype) * (lr * adjust(*param.shape)))
