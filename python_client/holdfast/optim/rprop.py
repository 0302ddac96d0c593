# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Rprop (Riedmiller & Braun 1993)."""

import holdfast

from .algorithm import Algorithm


class Rprop(Algorithm):
    """Steps by the gradient's sign, of a size that grows while it stays.

    State: "step", "prev" (the gradient before) and "step_size".
    """

    _algorithm = "rprop"

    def __init__(
        self,
        params,
        lr=1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        foreach=None,
        **options,
    ):
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "weight_decay": 0,
        }
        super().__init__(params, defaults, foreach=foreach, **options)
        # PyTorch's groups have no such option.
        for options in (self.defaults, *self.param_groups):
            del options["weight_decay"]

    def _new_state(self, group, param):
        return {
            "prev": holdfast.zeros_like(param),
            "step_size": holdfast.full_like(param, group["lr"]),
        }

    def _names(self, group):
        return ("prev", "step_size")

    def _scalars(self, group, state):
        return {
            "beta1": group["etas"][0],
            "beta2": group["etas"][1],
            "step_size": group["step_sizes"][0],
            "momentum": group["step_sizes"][1],
            "weight_decay": 0.0,
        }
