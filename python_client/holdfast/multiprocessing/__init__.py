# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.multiprocessing: Python's multiprocessing, with tensors shared by handle.

A tensor that goes through a queue or a pipe, or is an argument of a process, is not
copied: the other process opens the same memory on the daemon, and each sees what
the others write. So several processes may train one model (`model.share_memory()`).
Processes that this module starts use their parent's daemon.
"""

import multiprocessing
from multiprocessing import *  # noqa: F401, F403

from . import preparation, reductions
from .spawn import (  # noqa: F401
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies():
    """PyTorch's names; here all of them mean the daemon."""
    return set(_STRATEGIES)


def get_sharing_strategy():
    """What set_sharing_strategy() set."""
    return _strategy


def set_sharing_strategy(new_strategy):
    """Accepted: tensors are shared through the daemon, whatever the strategy."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise ValueError(f"one of {sorted(_STRATEGIES)} is expected: {new_strategy!r}")
    _strategy = new_strategy


reductions.register()
preparation.install()
