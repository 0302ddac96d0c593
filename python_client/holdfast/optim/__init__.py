# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Optimizers and learning-rate schedules, with PyTorch's API.

A step is one message to the daemon for each parameter group, whatever the
number of parameters.
"""

from . import lr_scheduler
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "SGD", "lr_scheduler"]


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise NotImplementedError(
        f"holdfast has no optim.{name}; it has SGD, Adam and AdamW."
    )
