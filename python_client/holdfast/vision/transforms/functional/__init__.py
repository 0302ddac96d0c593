# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Transforms as functions, of Pillow's images and of tensors [..., C, H, W].

Names, parameters and results are those of torchvision.transforms.functional
(version 0.14). What is given as an image of Pillow stays one and is worked on in
Pillow and NumPy; what is a tensor stays on the daemon.
"""

from holdfast.missing import module_getattr

from .colors import (  # noqa: F401
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    rgb_to_grayscale,
    to_grayscale,
)
from .conversion import (  # noqa: F401
    convert_image_dtype,
    normalize,
    pil_to_tensor,
    to_pil_image,
    to_tensor,
)
from .filters import erase, gaussian_blur  # noqa: F401
from .geometry import (  # noqa: F401
    center_crop,
    crop,
    five_crop,
    hflip,
    pad,
    resize,
    resized_crop,
    ten_crop,
    vflip,
)
from .images import (  # noqa: F401
    InterpolationMode,
    get_dimensions,
    get_image_num_channels,
    get_image_size,
)
from .tones import (  # noqa: F401
    adjust_sharpness,
    autocontrast,
    equalize,
    invert,
    posterize,
    solarize,
)
from .warps import affine, rotate  # noqa: F401

__getattr__ = module_getattr("torchvision.transforms.functional")
