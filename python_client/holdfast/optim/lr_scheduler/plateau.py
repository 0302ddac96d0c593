# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Rates that fall when a metric stops improving."""

import math

from ..optimizer import Optimizer
from .base import LRScheduler, per_group


class ReduceLROnPlateau(LRScheduler):
    """The rate is multiplied by factor when a metric has stopped improving.

    `step(metric)` each epoch; after more than `patience` epochs in a row
    without an improvement of `threshold`, the rate falls, not below min_lr.
    """

    def __init__(
        self,
        optimizer,
        mode="min",
        factor=0.1,
        patience=10,
        threshold=1e-4,
        threshold_mode="rel",
        cooldown=0,
        min_lr: float = 0,
        eps=1e-8,
        verbose=False,
    ):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer = optimizer
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.min_lrs = per_group(optimizer, min_lr)
        self.eps = eps
        self.verbose = verbose
        self.last_epoch = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]
        self._reset()

    def _reset(self):
        self.best = math.inf if self.mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics, epoch=None):
        """Judges a metric: a number, or a 0-d tensor (which waits for it)."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def _reduce(self):
        for i, group in enumerate(self.optimizer.param_groups):
            new = max(group["lr"] * self.factor, self.min_lrs[i])
            if group["lr"] - new > self.eps:
                group["lr"] = new
                if self.verbose:
                    print(
                        f"Epoch {self.last_epoch:5d}: reducing learning rate of "
                        f"group {i} to {new:.4e}."
                    )

    @property
    def in_cooldown(self):
        """Whether bad epochs are not counted at present."""
        return self.cooldown_counter > 0

    def is_better(self, a, best):
        """Whether metric a is an improvement on best."""
        if math.isinf(best) and (best > 0) == (self.mode == "min"):
            return not math.isnan(a) and a != best
        margin = self.threshold
        if self.threshold_mode == "rel":
            margin *= best
        return a < best - margin if self.mode == "min" else a > best + margin
