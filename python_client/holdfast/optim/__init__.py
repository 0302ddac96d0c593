# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Optimizers and learning-rate schedules, with PyTorch's API.

A step is one message to the daemon for each parameter group, whatever the
number of parameters.
"""

from holdfast.missing import module_getattr

from . import lr_scheduler
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "SGD", "lr_scheduler"]

__getattr__ = module_getattr("torch.optim")
