# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Adamax (Kingma & Ba 2015, section 7)."""

from .algorithm import RunningMeans


class Adamax(RunningMeans):
    """Adam with the largest recent gradient in the place of the root mean square.

    State: "step", "exp_avg" and "exp_inf".
    """

    _algorithm = "adamax"
    _means = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay: float = 0,
        foreach=None,
        **options,
    ):
        super().__init__(params, lr, betas, eps, weight_decay, foreach, options)

    def _scalars(self, group, state):
        beta1, beta2 = group["betas"]
        return {
            "step_size": group["lr"] / (1 - beta1 ** state["step"]),
            "beta1": beta1,
            "beta2": beta2,
            "eps": group["eps"],
        }
