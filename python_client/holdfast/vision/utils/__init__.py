# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Images side by side, in files, and with boxes and masks, with torchvision's API."""

from holdfast.missing import module_getattr

from .drawing import draw_bounding_boxes, draw_segmentation_masks
from .grids import make_grid, save_image

__all__ = [
    "draw_bounding_boxes",
    "draw_segmentation_masks",
    "make_grid",
    "save_image",
]

__getattr__ = module_getattr("torchvision.utils")
