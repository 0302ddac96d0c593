# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Adamax (Kingma & Ba 2015, section 7)."""

import holdfast

from .algorithm import Algorithm, check_betas, check_eps


class Adamax(Algorithm):
    """Adam with the largest recent gradient in the place of the root mean square.

    State: "step", "exp_avg" and "exp_inf".
    """

    _algorithm = "adamax"

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        **options,
    ):
        check_eps(eps)
        check_betas(betas)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults, foreach=foreach, **options)

    def _new_state(self, group, param):
        return {
            "exp_avg": holdfast.zeros_like(param),
            "exp_inf": holdfast.zeros_like(param),
        }

    def _names(self, group):
        return ("exp_avg", "exp_inf")

    def _scalars(self, group, state):
        beta1, beta2 = group["betas"]
        return {
            "step_size": group["lr"] / (1 - beta1 ** state["step"]),
            "beta1": beta1,
            "beta2": beta2,
            "eps": group["eps"],
        }
