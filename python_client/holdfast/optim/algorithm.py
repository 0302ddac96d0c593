# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Algorithm: what the optimizers on the op `optimizer_step` share."""

import holdfast
from holdfast import _C

from .optimizer import Optimizer, check_options

_ops = _C.ops
_MOST_STATES = 3


def check_betas(betas):
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def check_eps(eps):
    if not 0.0 <= eps:
        raise ValueError(f"Invalid epsilon value: {eps}")


class Algorithm(Optimizer):
    """A step is one message per group of parameters that took as many steps.

    Subclasses name the op's algorithm and give the step's scalars. `foreach` is
    accepted: every step already is. `capturable` and `differentiable` raise
    NotImplementedError.
    """

    _algorithm = None  # the op's name for it

    def __init__(
        self,
        params,
        defaults,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        check_options(
            type(self).__name__,
            defaults["lr"],
            defaults["weight_decay"],
            capturable=capturable,
            differentiable=differentiable,
        )
        own = {
            "foreach": foreach,
            "maximize": maximize,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, {**defaults, **own})

    def _new_state(self, group, param):
        """The state before the first step, but for "step": {name: value}."""
        raise NotImplementedError

    def _names(self, group):
        """Names of the states that the op updates, by its places; None: absent."""
        raise NotImplementedError

    def _scalars(self, group, state):
        """The op's scalars for the step whose number is in the state."""
        raise NotImplementedError

    def _step_group(self, group, params, grads):
        # Parameters that missed steps, for want of a gradient, have other scalars.
        alike = {}
        for param, grad in zip(params, grads):
            state = self.state[param]
            if not state:
                state["step"] = 0
                state.update(self._new_state(group, param))
            state["step"] += 1
            scalars = tuple(self._scalars(group, state).items())
            alike.setdefault(scalars, []).append((param, grad, state))
        for scalars, rows in alike.items():
            self._send(group, dict(scalars), rows)

    def _send(self, group, scalars, rows):
        params, grads, states = zip(*rows)
        lists = [list(grads) for _ in range(_MOST_STATES)]
        for place, name in enumerate(self._names(group)):
            if name is not None:
                lists[place] = [state[name] for state in states]
        if "weight_decay" not in scalars:
            scalars["weight_decay"] = group["weight_decay"]
        _ops.optimizer_step(
            list(params),
            list(grads),
            *lists,
            algorithm=self._algorithm,
            maximize=group["maximize"],
            **scalars,
        )

    def _after_load(self):
        for state in self.state.values():
            step = state.get("step", 0)
            if isinstance(step, holdfast.Tensor):
                step = step.item()
            state["step"] = int(step)


class RunningMeans(Algorithm):
    """With Adam's options and a state of two means, by the names in `_means`."""

    _means = ("exp_avg", "exp_avg_sq")

    def __init__(
        self, params, lr, betas, eps, weight_decay, foreach, options, **defaults
    ):
        check_eps(eps)
        check_betas(betas)
        adams = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**adams, **defaults}, foreach=foreach, **options)

    def _new_state(self, group, param):
        return {name: holdfast.zeros_like(param) for name in self._means}

    def _names(self, group):
        return self._means
