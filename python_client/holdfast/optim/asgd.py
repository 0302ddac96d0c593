# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Averaged SGD (Polyak & Juditsky 1992)."""

import holdfast

from .algorithm import Algorithm


class ASGD(Algorithm):
    """SGD that keeps an average of the parameters in the state "ax".

    State: "step", "eta" and "mu" (floats), "ax".
    """

    _algorithm = "asgd"

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay: float = 0,
        foreach=None,
        **options,
    ):
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
        }
        super().__init__(params, defaults, foreach=foreach, **options)

    def _new_state(self, group, param):
        return {"eta": group["lr"], "mu": 1.0, "ax": holdfast.zeros_like(param)}

    def _names(self, group):
        return ("ax",)

    def _scalars(self, group, state):
        eta, mu, lambd = float(state["eta"]), float(state["mu"]), group["lambd"]
        # What the step after this one uses.
        step, lr = state["step"], group["lr"]
        state["eta"] = lr / ((1 + lambd * lr * step) ** group["alpha"])
        state["mu"] = 1 / max(1, step - group["t0"])
        return {"step_size": eta, "shrink": 1 - lambd * eta, "momentum": mu}
