# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""NAdam (Dozat 2016)."""

import math

from .algorithm import RunningMeans


class NAdam(RunningMeans):
    """Adam with Nesterov's momentum.

    State: "step", "mu_product" (a float), "exp_avg" and "exp_avg_sq".
    """

    _algorithm = "nadam"

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay: float = 0,
        momentum_decay=4e-3,
        foreach=None,
        **options,
    ):
        if not 0.0 <= momentum_decay:
            raise ValueError(f"Invalid momentum_decay value: {momentum_decay}")
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            foreach,
            options,
            momentum_decay=momentum_decay,
        )

    def _new_state(self, group, param):
        return {"mu_product": 1.0, **super()._new_state(group, param)}

    def _scalars(self, group, state):
        beta1, beta2 = group["betas"]
        step, lr, decay = state["step"], group["lr"], group["momentum_decay"]
        mu = beta1 * (1 - 0.5 * 0.96 ** (step * decay))
        mu_next = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * decay))
        state["mu_product"] *= mu
        product = state["mu_product"]
        return {
            "step_size": lr * (1 - mu) / (1 - product),
            "momentum": lr * mu_next / (1 - product * mu_next),
            "beta1": beta1,
            "beta2": beta2,
            "eps": group["eps"],
            "correction": math.sqrt(1 - beta2**step),
        }

    def _after_load(self):
        super()._after_load()
        for state in self.state.values():
            state["mu_product"] = float(state.get("mu_product", 1.0))
