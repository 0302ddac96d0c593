# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""RAdam (Liu et al. 2020)."""

import math

from .algorithm import RunningMeans


class RAdam(RunningMeans):
    """Adam that adapts its steps once the variance can be trusted.

    State: "step", "exp_avg" and "exp_avg_sq".
    """

    _algorithm = "radam"

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay: float = 0,
        foreach=None,
        **options,
    ):
        super().__init__(params, lr, betas, eps, weight_decay, foreach, options)

    def _scalars(self, group, state):
        beta1, beta2 = group["betas"]
        step = state["step"]
        last, correction = 2 / (1 - beta2) - 1, 1 - beta2**step
        length = last - 2 * step * beta2**step / correction
        size, root = group["lr"] / (1 - beta1**step), 0.0
        if length > 5:
            size *= math.sqrt(
                (length - 4) * (length - 2) * last / ((last - 4) * (last - 2) * length)
            )
            root = math.sqrt(correction)
        return {
            "step_size": size,
            "correction": root,
            "beta1": beta1,
            "beta2": beta2,
            "eps": group["eps"],
        }
