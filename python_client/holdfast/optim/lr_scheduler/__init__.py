# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Learning-rate schedules: pure arithmetic on an optimizer's groups.

Call `scheduler.step()` once after each epoch's optimizer steps (OneCycleLR and
CyclicLR: after each batch's).
"""

from .base import LRScheduler
from .cycles import CosineAnnealingLR, CosineAnnealingWarmRestarts
from .momentum_cycles import CyclicLR, OneCycleLR
from .plateau import ReduceLROnPlateau
from .sequence import ChainedScheduler, SequentialLR
from .steps import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)

# The name that PyTorch before 2.0 has.
_LRScheduler = LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
