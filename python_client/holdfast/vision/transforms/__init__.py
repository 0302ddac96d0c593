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

from . import functional as functional  # noqa: F401
from .autoaugment import (  # noqa: F401
    AugMix as AugMix,
    AutoAugment as AutoAugment,
    RandAugment as RandAugment,
    TrivialAugmentWide as TrivialAugmentWide,
)
from .colors import (  # noqa: F401
    ColorJitter as ColorJitter,
    Grayscale as Grayscale,
    RandomGrayscale as RandomGrayscale,
)
from .composition import (  # noqa: F401
    Compose as Compose,
    Lambda as Lambda,
    RandomApply as RandomApply,
    RandomChoice as RandomChoice,
    RandomOrder as RandomOrder,
    RandomTransforms as RandomTransforms,
)
from .conversion import (  # noqa: F401
    ConvertImageDtype as ConvertImageDtype,
    LinearTransformation as LinearTransformation,
    Normalize as Normalize,
    PILToTensor as PILToTensor,
    ToPILImage as ToPILImage,
    ToTensor as ToTensor,
)
from .crops import (  # noqa: F401
    RandomCrop as RandomCrop,
    RandomResizedCrop as RandomResizedCrop,
)
from .filters import (  # noqa: F401
    GaussianBlur as GaussianBlur,
    RandomErasing as RandomErasing,
)
from .flips import (  # noqa: F401
    RandomHorizontalFlip as RandomHorizontalFlip,
    RandomVerticalFlip as RandomVerticalFlip,
)
from .functional import InterpolationMode as InterpolationMode  # noqa: F401
from .policies import AutoAugmentPolicy as AutoAugmentPolicy  # noqa: F401
from .sizes import (  # noqa: F401
    CenterCrop as CenterCrop,
    FiveCrop as FiveCrop,
    Pad as Pad,
    Resize as Resize,
    TenCrop as TenCrop,
)
from .tones import (  # noqa: F401
    RandomAdjustSharpness as RandomAdjustSharpness,
    RandomAutocontrast as RandomAutocontrast,
    RandomEqualize as RandomEqualize,
    RandomInvert as RandomInvert,
    RandomPosterize as RandomPosterize,
    RandomSolarize as RandomSolarize,
)
from .warps import (  # noqa: F401
    RandomAffine as RandomAffine,
    RandomRotation as RandomRotation,
)

__getattr__ = module_getattr("torchvision.transforms")
