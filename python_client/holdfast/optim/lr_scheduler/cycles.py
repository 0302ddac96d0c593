# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Rates that follow a curve over the whole training."""

import math

from .base import LRScheduler


class CosineAnnealingLR(LRScheduler):
    """From initial_lr to eta_min along a cosine in T_max epochs.

    Loshchilov & Hutter 2017, without restarts.
    """

    def __init__(
        self, optimizer, T_max, eta_min: float = 0, last_epoch=-1, verbose=False
    ):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self):
        groups = self.optimizer.param_groups
        if self.last_epoch == 0:
            return self._scaled(1)
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # From the minimum, where the ratio below is undefined.
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                group["lr"] + (base - self.eta_min) * rise
                for base, group in zip(self.base_lrs, groups)
            ]
        ratio = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / (
            1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        )
        return [ratio * (group["lr"] - self.eta_min) + self.eta_min for group in groups]

    def _get_closed_form_lr(self):
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """From initial_lr to eta_min along a cosine, then again from initial_lr.

    Loshchilov & Hutter 2017. The first cycle takes T_0 epochs, each further one
    T_mult times as many. step(epoch) takes fractions of epochs.
    """

    def __init__(
        self, optimizer, T_0, T_mult=1, eta_min: float = 0, last_epoch=-1, verbose=False
    ):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self):
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch=None):
        """Moves one epoch on, or to `epoch`, which may be a fraction."""
        if epoch is None:
            # One on within the cycle: an epoch set before may be a fraction.
            whole = self.last_epoch + 1
            if self.last_epoch < 0:
                self._place(0)
            else:
                self.T_cur += 1
                if self.T_cur >= self.T_i:
                    self.T_cur -= self.T_i
                    self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            whole = math.floor(epoch)
            self._place(epoch)
        self.last_epoch = whole
        with self._within_step():
            self._set(self.get_lr())

    def _place(self, epoch):
        """Cycle and position within it of `epoch`, counted from the start."""
        self.T_i = self.T_0
        if self.T_mult == 1:
            self.T_cur = epoch % self.T_0
            return
        while epoch >= self.T_i:
            epoch -= self.T_i
            self.T_i *= self.T_mult
        self.T_cur = epoch
