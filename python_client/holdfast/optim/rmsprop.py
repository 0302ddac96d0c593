# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""RMSprop (Hinton, lecture 6 of 2012)."""

import holdfast

from .algorithm import Algorithm, check_eps


class RMSprop(Algorithm):
    """Steps divided by the root mean square of recent gradients.

    State: "step", "square_avg", with momentum "momentum_buffer", centered
    "grad_avg".
    """

    _algorithm = "rmsprop"

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered=False,
        foreach=None,
        **options,
    ):
        check_eps(eps)
        if not 0.0 <= momentum:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if not 0.0 <= alpha:
            raise ValueError(f"Invalid alpha value: {alpha}")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
        }
        super().__init__(params, defaults, foreach=foreach, **options)

    def _new_state(self, group, param):
        names = [name for name in self._names(group) if name is not None]
        return {name: holdfast.zeros_like(param) for name in names}

    def _names(self, group):
        return (
            "square_avg",
            "momentum_buffer" if group["momentum"] > 0 else None,
            "grad_avg" if group["centered"] else None,
        )

    def _scalars(self, group, state):
        return {
            "step_size": group["lr"],
            "beta1": group["alpha"],
            "eps": group["eps"],
            "momentum": group["momentum"],
            "centered": group["centered"],
        }
