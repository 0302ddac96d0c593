# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Adadelta (Zeiler 2012)."""

import holdfast

from .algorithm import Algorithm, check_eps


class Adadelta(Algorithm):
    """Steps of the size that past steps had, relative to past gradients.

    State: "step", "square_avg" and "acc_delta".
    """

    _algorithm = "adadelta"

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay: float = 0,
        foreach=None,
        **options,
    ):
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_eps(eps)
        defaults = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults, foreach=foreach, **options)

    def _new_state(self, group, param):
        return {
            "square_avg": holdfast.zeros_like(param),
            "acc_delta": holdfast.zeros_like(param),
        }

    def _names(self, group):
        return ("square_avg", "acc_delta")

    def _scalars(self, group, state):
        return {"step_size": group["lr"], "beta1": group["rho"], "eps": group["eps"]}
