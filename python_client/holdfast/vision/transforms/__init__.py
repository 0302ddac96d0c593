# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Transforms of images in torchvision's shape (version 0.14).

    from holdfast.vision import transforms

    transform = transforms.Compose([
        transforms.RandomCrop(32, padding=4),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25)),
    ])

They take images of Pillow, which stay in this process until ToTensor(), and tensors
[..., C, H, W]. What is random is drawn through holdfast.rand, randint, uniform_ and
randperm, so that manual_seed() repeats it (RandomChoice and RandomOrder draw from
Python's random, as in torchvision).
"""

from holdfast.missing import module_getattr

from . import functional  # noqa: F401
from .autoaugment import (  # noqa: F401
    AugMix,
    AutoAugment,
    RandAugment,
    TrivialAugmentWide,
)
from .colors import ColorJitter, Grayscale, RandomGrayscale  # noqa: F401
from .composition import (  # noqa: F401
    Compose,
    Lambda,
    RandomApply,
    RandomChoice,
    RandomOrder,
    RandomTransforms,
)
from .conversion import (  # noqa: F401
    ConvertImageDtype,
    LinearTransformation,
    Normalize,
    PILToTensor,
    ToPILImage,
    ToTensor,
)
from .crops import RandomCrop, RandomResizedCrop  # noqa: F401
from .filters import GaussianBlur, RandomErasing  # noqa: F401
from .flips import RandomHorizontalFlip, RandomVerticalFlip  # noqa: F401
from .functional import InterpolationMode  # noqa: F401
from .policies import AutoAugmentPolicy  # noqa: F401
from .sizes import CenterCrop, FiveCrop, Pad, Resize, TenCrop  # noqa: F401
from .tones import (  # noqa: F401
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomEqualize,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
)
from .warps import RandomAffine, RandomRotation  # noqa: F401

__getattr__ = module_getattr("torchvision.transforms")
