# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.utils.benchmark: how long a statement takes, until the daemon has done it."""

import statistics
import time
import timeit

from holdfast import _C
from holdfast.missing import module_getattr

__all__ = ["Measurement", "Timer", "timer"]


def timer():
    """Seconds of a steady clock, once the daemon has done what was sent."""
    session = _C.current_session()
    if session is not None:
        session.synchronize()
    return time.perf_counter()


class Measurement:
    """Times of a statement: `times` is a list of seconds for one run of it."""

    def __init__(self, number_per_run, raw_times, label=None, description=None):
        self.number_per_run = number_per_run
        self.raw_times = raw_times
        self.label = label
        self.description = description

    @property
    def times(self):
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self):
        return statistics.fmean(self.times)

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def iqr(self):
        """From the first quartile to the third, in seconds."""
        if len(self.raw_times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    def __repr__(self):
        for scale, unit in ((1, "s"), (1e3, "ms"), (1e6, "us"), (1e9, "ns")):
            if self.median * scale >= 1:
                break
        title = ": ".join(str(x) for x in (self.label, self.description) if x)
        return (
            f"{title or 'Measurement'}\n  {self.median * scale:.2f} {unit} (median of "
            f"{len(self.raw_times)}, {self.number_per_run} runs each, IQR "
            f"{self.iqr * scale:.2f} {unit})"
        )


class Timer:
    """Runs `stmt` after `setup`, both Python source, with `globals` as its names.

    `timer` and the other options are PyTorch's; `num_threads` is of the daemon's
    choosing and only noted.
    """

    def __init__(
        self,
        stmt="pass",
        setup="pass",
        global_setup="",
        timer=timer,
        globals=None,
        label=None,
        sub_label=None,
        description=None,
        env=None,
        num_threads=1,
        language="python",
    ):
        if str(language).lower().rpartition(".")[2] not in ("python", "py"):
            raise ValueError(f"holdfast times Python statements. Got {language!r}.")
        self._label = ", ".join(str(x) for x in (label or stmt, sub_label) if x)
        self._description = description
        self._timer = timeit.Timer(stmt, setup, timer, globals)

    def _measured(self, number, times):
        return Measurement(number, times, self._label, self._description)

    def timeit(self, number=1_000_000):
        """A Measurement of `number` runs, after as many as a hundredth to warm up."""
        self._timer.timeit(max(number // 100, 2))
        return self._measured(number, [self._timer.timeit(number)])

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """A Measurement of blocks that take about a millisecond or more each, for
        `min_run_time` seconds in all."""
        number, taken = 1, 0.0
        while (taken := self._timer.timeit(number)) < 1e-3:
            number *= 10
        times = [taken]
        while sum(times) < min_run_time:
            times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measured(number, times)

    adaptive_autorange = blocked_autorange


__getattr__ = module_getattr("torch.utils.benchmark")
