# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Rates that follow a curve over the whole training."""

import math

from holdfast.errors import UnsupportedError

from .base import LRScheduler, per_group


class CosineAnnealingLR(LRScheduler):
    """From initial_lr to eta_min along a cosine in T_max epochs.

    Loshchilov & Hutter 2017, without restarts.
    """

    def __init__(self, optimizer, T_max, eta_min=0, last_epoch=-1, verbose=False):
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


class OneCycleLR(LRScheduler):
    """Up to max_lr and down again within total_steps, a step per batch.

    Smith & Topin 2018. Give total_steps, or epochs and steps_per_epoch.
    Momentum (or Adam's first beta) cycles the other way if cycle_momentum.
    """

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start=0.3,
        anneal_strategy="cos",
        cycle_momentum=True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor=25.0,
        final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
        verbose=False,
    ):
        if three_phase:
            raise UnsupportedError("holdfast has no OneCycleLR(three_phase=True).")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                "anneal_strategy must be one of 'cos' or 'linear', instead got "
                f"{anneal_strategy}"
            )
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(
                    "You must define either total_steps OR (epochs AND steps_per_epoch)"
                )
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0:
            raise ValueError(
                f"Expected positive integer total_steps. Got {total_steps}"
            )
        if not 0 <= pct_start <= 1:
            raise ValueError(
                f"Expected float between 0 and 1 pct_start, but got {pct_start}"
            )
        self.total_steps = total_steps
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        self._peak = float(pct_start * total_steps) - 1
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, per_group(optimizer, max_lr)):
                group["max_lr"] = lr
                group["initial_lr"] = lr / div_factor
                group["min_lr"] = group["initial_lr"] / final_div_factor
                group["max_momentum"] = max_momentum
                group["base_momentum"] = base_momentum
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self):
        step = self.last_epoch
        last = self.total_steps - 1
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The total number of steps is "
                f"{self.total_steps}"
            )
        rates = []
        for group in self.optimizer.param_groups:
            rising = step <= self._peak
            start, end = (0, self._peak) if rising else (self._peak, last)
            share = (step - start) / (end - start) if end > start else 1.0
            first, second = ("initial_lr", "max_lr") if rising else ("max_lr", "min_lr")
            rates.append(self._between(group[first], group[second], share))
            if self.cycle_momentum:
                high, low = group["max_momentum"], group["base_momentum"]
                ends = (high, low) if rising else (low, high)
                momentum = self._between(*ends, share)
                if "betas" in group:
                    group["betas"] = (momentum, *group["betas"][1:])
                else:
                    group["momentum"] = momentum
        return rates

    def _between(self, start, end, share):
        if self.anneal_strategy == "linear":
            return start + (end - start) * share
        return end + (start - end) / 2.0 * (1 + math.cos(math.pi * share))
