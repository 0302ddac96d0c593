# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What every schedule does: epochs in, rates out."""

import contextlib

from ..optimizer import Optimizer


class LRScheduler:
    """Base class: get_lr() gives each group's rate for self.last_epoch.

    `last_epoch` other than -1 goes on from that epoch; the groups must then
    have "initial_lr".
    """

    # What schedules of programs look at: how often step() was called, and whether
    # it is what called get_lr().
    _step_count = 0
    _get_lr_called_within_step = False

    def __init__(self, optimizer, last_epoch=-1, verbose=False):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    "param 'initial_lr' is not specified in "
                    f"param_groups[{i}] when resuming an optimizer"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.verbose = verbose
        self.step()

    def get_lr(self):
        """The groups' rates for self.last_epoch; subclasses define it."""
        raise NotImplementedError

    def get_last_lr(self):
        """The groups' rates set last."""
        return self._last_lr

    def step(self, epoch=None):
        """Moves to the next epoch (or to `epoch`) and sets the rates."""
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        with self._within_step():
            self._set(self.get_lr() if epoch is None else self._closed_lr())

    @contextlib.contextmanager
    def _within_step(self):
        """While get_lr() is asked by step()."""
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _set(self, lrs):
        """Gives each group its rate."""
        for i, (group, lr) in enumerate(zip(self.optimizer.param_groups, lrs)):
            group["lr"] = lr
            if self.verbose:
                print(f"Adjusting learning rate of group {i} to {lr:.4e}.")
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def _closed_lr(self):
        closed = getattr(self, "_get_closed_form_lr", None)
        return self.get_lr() if closed is None else closed()

    def state_dict(self):
        """Everything but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict):
        """Takes over what state_dict() returned."""
        self.__dict__.update(state_dict)

    def _scaled(self, factor):
        """Current rates times a factor: schedules that others may add to."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]


def per_group(optimizer, value):
    """One value for each group, from one for all or from a list."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"Expected {count} values, one per group, but got {len(value)}"
        )
    return list(value)
