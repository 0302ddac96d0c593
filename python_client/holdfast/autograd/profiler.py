# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.autograd.profiler: the profiler under its older name."""

from holdfast import missing
from holdfast.profiler import events
from holdfast.profiler.profile import warn_of_missing
from holdfast.profiler.ranges import record_function
from holdfast.profiler.recording import Recording

__all__ = ["profile", "record_function"]

__getattr__ = missing.module_getattr("torch.autograd.profiler")


class profile:
    """Records the default session in its block; then it is its events.

    enabled False: does nothing. Other arguments and results: see
    holdfast.profiler.profile. Source: torch.autograd.profiler.profile.
    """

    def __init__(
        self,
        enabled=True,
        *,
        use_cuda=False,
        use_device=None,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        use_kineto=False,
        use_cpu=True,
    ):
        self.enabled = enabled
        self.function_events = None
        self._profile_memory = profile_memory
        self._recording = None
        self._record_shapes = record_shapes
        warn_of_missing(
            with_stack=with_stack, with_flops=with_flops, with_modules=with_modules
        )

    def __enter__(self):
        if self.enabled:
            if self._recording is not None:
                raise RuntimeError("Profiler context manager is not reentrant")
            self._recording = Recording(shapes=self._record_shapes)
            self._recording.start()
        return self

    def __exit__(self, error_type, error, traceback):
        if not self.enabled:
            return
        try:
            self._recording.stop()
        except Exception:
            if error is None:
                raise
            return  # the block's own error is the one to tell
        self.function_events = events.build(self._recording, self._profile_memory)

    def _complete(self):
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        """The events by name."""
        return self._complete().key_averages(group_by_input_shape, group_by_stack_n)

    def table(self, *args, **kwargs):
        """The events as text."""
        return self._complete().table(*args, **kwargs)

    def total_average(self):
        """All events in one."""
        return self._complete().total_average()

    def export_chrome_trace(self, path):
        """Writes a trace for ui.perfetto.dev."""
        return self._complete().export_chrome_trace(path)

    @property
    def self_cpu_time_total(self):
        """µs that the daemon executed."""
        return self._complete().self_cpu_time_total

    def __str__(self):
        if self.function_events is None:
            return "<unfinished torch.autograd.profile>"
        return self.table()
