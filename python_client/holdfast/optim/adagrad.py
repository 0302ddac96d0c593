# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Adagrad (Duchi, Hazan & Singer 2011)."""

import holdfast

from .algorithm import Algorithm, check_eps


class Adagrad(Algorithm):
    """Steps divided by the root of the sum of squared gradients.

    The learning rate falls as lr / (1 + (step - 1) * lr_decay). State: "step" and
    "sum".
    """

    _algorithm = "adagrad"

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps=1e-10,
        foreach=None,
        **options,
    ):
        if not 0.0 <= lr_decay:
            raise ValueError(f"Invalid lr_decay value: {lr_decay}")
        if not 0.0 <= initial_accumulator_value:
            raise ValueError(
                f"Invalid initial_accumulator_value value: {initial_accumulator_value}"
            )
        check_eps(eps)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
        }
        super().__init__(params, defaults, foreach=foreach, **options)

    def _new_state(self, group, param):
        start = group["initial_accumulator_value"]
        return {"sum": holdfast.full_like(param, start)}

    def _names(self, group):
        return ("sum",)

    def _scalars(self, group, state):
        decay = 1 + (state["step"] - 1) * group["lr_decay"]
        return {"step_size": group["lr"] / decay, "eps": group["eps"]}
