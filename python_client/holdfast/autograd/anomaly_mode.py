# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Finding the op whose gradient is wrong: PyTorch's anomaly mode.

While it is on, every op's call stack is remembered, backward waits for its
result, and a NaN that a gradient rule computes is an error with the stack of
the forward op. Slow; for finding faults.
"""

import traceback
import warnings
from collections import OrderedDict

from holdfast import _C

# Call stacks by op number, the oldest first; a bound, since a training run may
# forget to turn the mode off.
_MOST_STACKS = 1 << 16
_stacks = OrderedDict()
_enabled = False
_check_nan = True


def _note(sequence):
    """Called by the extension after each recorded op while the mode is on."""
    _stacks[sequence] = traceback.extract_stack()[:-1]
    if len(_stacks) > _MOST_STACKS:
        _stacks.popitem(last=False)


def is_anomaly_enabled():
    """Whether anomaly mode is on."""
    return _enabled


def is_anomaly_check_nan_enabled():
    """Whether a NaN in a gradient is an error."""
    return _enabled and _check_nan


def _set(mode, check_nan):
    global _enabled, _check_nan
    _enabled, _check_nan = bool(mode), bool(check_nan)
    _C.set_note_ops(_note if _enabled else None)
    if not _enabled:
        _stacks.clear()


class set_detect_anomaly:
    """Turns the mode on or off; as a context manager until the block ends."""

    def __init__(self, mode, check_nan=True):
        self._before = (_enabled, _check_nan)
        _set(mode, check_nan)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        _set(*self._before)


class detect_anomaly(set_detect_anomaly):
    """Context manager: the mode is on inside."""

    def __init__(self, check_nan=True):
        self._check_nan = check_nan

    def __enter__(self):
        super().__init__(True, self._check_nan)
        return self


def explain(error):
    """Warns with the call stack of the forward op behind a backward's error."""
    stack = _stacks.get(getattr(error, "forward_op_sequence", 0))
    if stack is None:
        return
    # The error in the middle of a hook or a function has its own traceback.
    warnings.warn(
        "Error detected in backward. Traceback of forward call that caused the "
        "error:\n" + "".join(traceback.format_list(stack)),
        stacklevel=3,
    )
