# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""When a profiler records, by the number of the step."""

import enum
import warnings


class ProfilerAction(enum.Enum):
    """What a profiler does during one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class ProfilerActivity(enum.Enum):
    """What to record. Holdfast records the program and the daemon, always."""

    CPU = 0
    CUDA = 1

    @classmethod
    def supported(cls):
        """The activities that profiles show, a set."""
        return {cls.CPU}


def schedule(*, wait, warmup, active, repeat=0, skip_first=0):
    """A function from a step's number to the ProfilerAction of that step.

    After `skip_first` steps it repeats: `wait` steps of nothing, `warmup` steps,
    `active` steps that are recorded, the last of which ends in
    `on_trace_ready`. `repeat` cycles, 0: for ever. All are ints; ValueError for
    a negative one, or for active=0.
    """
    numbers = dict(
        wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first
    )
    for name, number in numbers.items():
        if number < 0 or (name == "active" and number == 0):
            least = 1 if name == "active" else 0
            raise ValueError(
                f"[schedule] {name} must be at least {least}. Got {name}={number}."
            )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results")

    def action(step):
        if step < 0:
            raise ValueError(f"[schedule] a step counts from 0. Got {step}.")
        step -= skip_first
        cycle = wait + warmup + active
        if step < 0 or (repeat > 0 and step >= repeat * cycle):
            return ProfilerAction.NONE
        step %= cycle
        if step < wait:
            return ProfilerAction.NONE
        if step < wait + warmup:
            return ProfilerAction.WARMUP
        if step < cycle - 1:
            return ProfilerAction.RECORD
        return ProfilerAction.RECORD_AND_SAVE

    return action


def always(_):
    """The schedule of a profiler without one."""
    return ProfilerAction.RECORD
