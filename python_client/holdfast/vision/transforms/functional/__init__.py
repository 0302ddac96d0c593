# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Transforms as functions, of Pillow's images and of tensors [..., C, H, W].

Names, parameters and results are those of torchvision.transforms.functional
(version 0.14). What is given as an image of Pillow stays one and is worked on in
Pillow and NumPy; what is a tensor stays on the daemon.
"""

from holdfast.missing import module_getattr

from .colors import (  # noqa: F401
    adjust_brightness as adjust_brightness,
    adjust_contrast as adjust_contrast,
    adjust_gamma as adjust_gamma,
    adjust_hue as adjust_hue,
    adjust_saturation as adjust_saturation,
    rgb_to_grayscale as rgb_to_grayscale,
    to_grayscale as to_grayscale,
)
from .conversion import (  # noqa: F401
    convert_image_dtype as convert_image_dtype,
    normalize as normalize,
    pil_to_tensor as pil_to_tensor,
    to_pil_image as to_pil_image,
    to_tensor as to_tensor,
)
from .filters import erase as erase, gaussian_blur as gaussian_blur  # noqa: F401
from .geometry import (  # noqa: F401
    center_crop as center_crop,
    crop as crop,
    five_crop as five_crop,
    hflip as hflip,
    pad as pad,
    resize as resize,
    resized_crop as resized_crop,
    ten_crop as ten_crop,
    vflip as vflip,
)
from .images import (  # noqa: F401
    InterpolationMode as InterpolationMode,
    get_dimensions as get_dimensions,
    get_image_num_channels as get_image_num_channels,
    get_image_size as get_image_size,
)
from .tones import (  # noqa: F401
    adjust_sharpness as adjust_sharpness,
    autocontrast as autocontrast,
    equalize as equalize,
    invert as invert,
    posterize as posterize,
    solarize as solarize,
)
from .warps import affine as affine, rotate as rotate  # noqa: F401

__getattr__ = module_getattr("torchvision.transforms.functional")
