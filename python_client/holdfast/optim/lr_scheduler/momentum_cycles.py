# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Rates that go up and down from batch to batch, momentum the other way."""

import math

from .base import LRScheduler, per_group


def _set_momentum(group, momentum):
    """Momentum, or Adam's first beta."""
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


def _check_momentum(optimizer):
    if not ("momentum" in optimizer.defaults or "betas" in optimizer.defaults):
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option "
            f"enabled. {type(optimizer).__name__} has neither."
        )


class OneCycleLR(LRScheduler):
    """Up to max_lr and down again within total_steps, a step per batch.

    Smith & Topin 2018. Give total_steps, or epochs and steps_per_epoch.
    Momentum (or Adam's first beta) cycles the other way if cycle_momentum. With
    three_phase the rate comes down to where it began as slowly as it went up, then
    to its least in what is left.
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
        if cycle_momentum:
            _check_momentum(optimizer)
        self.total_steps = total_steps
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        rise = float(pct_start * total_steps)
        ends = [rise - 1, 2 * rise - 2] if three_phase else [rise - 1]
        self._ends = [*ends, total_steps - 1]
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
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The total number of steps is "
                f"{self.total_steps}"
            )
        names = ["initial_lr", "max_lr", "min_lr"]
        momenta = ["max_momentum", "base_momentum", "max_momentum"]
        if len(self._ends) == 3:
            names.insert(2, "initial_lr")
            momenta.append("max_momentum")
        phase = sum(step > end for end in self._ends[:-1])
        start = self._ends[phase - 1] if phase else 0
        end = self._ends[phase]
        share = (step - start) / (end - start) if end > start else 1.0
        rates = []
        for group in self.optimizer.param_groups:
            low, high = group[names[phase]], group[names[phase + 1]]
            rates.append(self._between(low, high, share))
            if self.cycle_momentum:
                low, high = group[momenta[phase]], group[momenta[phase + 1]]
                _set_momentum(group, self._between(low, high, share))
        return rates

    def _between(self, start, end, share):
        if self.anneal_strategy == "linear":
            return start + (end - start) * share
        return end + (start - end) / 2.0 * (1 + math.cos(math.pi * share))


class CyclicLR(LRScheduler):
    """From base_lr up to max_lr in step_size_up batches and down in step_size_down.

    Smith 2017. mode "triangular2" halves the height at each cycle, "exp_range"
    multiplies it by gamma at each batch; scale_fn, of the cycle's number or of the
    batch's as scale_mode says, takes the place of both. Momentum (or Adam's first
    beta) goes the other way between max_momentum and base_momentum.
    """

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode="triangular",
        gamma=1.0,
        scale_fn=None,
        scale_mode="cycle",
        cycle_momentum=True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch=-1,
        verbose=False,
    ):
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(
                "mode is invalid and scale_fn is None: mode must be 'triangular', "
                f"'triangular2' or 'exp_range', but got {mode!r}"
            )
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up) + float(down)
        self.step_ratio = float(step_size_up) / self.total_size
        self.mode = mode
        self.gamma = gamma
        self.scale_mode = scale_mode if scale_fn is not None else None
        self._scale_fn = scale_fn
        self.max_lrs = per_group(optimizer, max_lr)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _check_momentum(optimizer)
            self.base_momentums = per_group(optimizer, base_momentum)
            self.max_momentums = per_group(optimizer, max_momentum)
        base_lrs = per_group(optimizer, base_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs):
                group["lr"] = group["initial_lr"] = lr
        super().__init__(optimizer, last_epoch, verbose)
        self.base_lrs = base_lrs

    def get_lr(self):
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        rising = x <= self.step_ratio
        share = x / self.step_ratio if rising else (x - 1) / (self.step_ratio - 1)
        share *= self._height(cycle)
        if self.cycle_momentum:
            ranges = zip(self.base_momentums, self.max_momentums)
            for group, (low, high) in zip(self.optimizer.param_groups, ranges):
                _set_momentum(group, high - (high - low) * share)
        ranges = zip(self.base_lrs, self.max_lrs)
        return [low + (high - low) * share for low, high in ranges]

    def _height(self, cycle):
        """What the cycle's amplitude is multiplied by."""
        if self._scale_fn is not None:
            by_cycle = self.scale_mode == "cycle"
            return self._scale_fn(cycle if by_cycle else self.last_epoch)
        if self.mode == "triangular2":
            return 1 / 2.0 ** (cycle - 1)
        return self.gamma**self.last_epoch if self.mode == "exp_range" else 1.0

    def state_dict(self):
        """Without scale_fn, which load_state_dict leaves as it is."""
        state = super().state_dict()
        state.pop("_scale_fn")
        return state
