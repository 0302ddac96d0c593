# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Boxes and masks on images."""

import warnings

import holdfast

from ..pillow import pillow


@holdfast.no_grad()
def draw_bounding_boxes(
    image,
    boxes,
    labels=None,
    colors=None,
    fill=False,
    width=1,
    font=None,
    font_size=None,
):
    """A copy of an image with boxes on it: [3, H, W] uint8.

    `image`: [3, H, W] or [1, H, W] uint8. `boxes`: [N, 4], xmin, ymin, xmax, ymax in
    pixels. `labels`: N strings or None. `colors`: one for all or N, names or (r, g,
    b). `fill` tints the boxes. `font`: a TrueType file, `font_size` in points.
    Drawn with Pillow on this machine.
    """
    _check_image(image, (1, 3), "Only grayscale and RGB images are supported")
    count = boxes.shape[0]
    if count == 0:
        warnings.warn("boxes doesn't contain any box. No box was drawn", stacklevel=2)
        return image
    if boxes.dim() != 2 or boxes.shape[1] != 4:
        raise ValueError(f"boxes must be of shape (N, 4). Got {tuple(boxes.shape)}.")
    corners = boxes.to(holdfast.int64).tolist()
    for box in boxes.tolist():
        if box[0] > box[2] or box[1] > box[3]:
            raise ValueError(
                f"Boxes need to be in (xmin, ymin, xmax, ymax) format. Got {box}."
            )
    if labels is None:
        labels = [None] * count
    elif len(labels) != count:
        raise ValueError(
            f"Number of boxes ({count}) and labels ({len(labels)}) mismatch. Please "
            "specify labels for each box."
        )
    colors = _box_colors(colors, count)
    letters = _font(font, font_size)
    pixels = image.expand(3, -1, -1).permute(1, 2, 0).contiguous().cpu().numpy()
    picture = pillow().fromarray(pixels)
    pen = pillow("ImageDraw").Draw(picture, "RGBA" if fill else None)
    for box, color, label in zip(corners, colors, labels, strict=False):
        inside = (*color, 100) if fill else None
        pen.rectangle(box, width=width, outline=color, fill=inside)
        if label is not None:
            place = box[0] + width + 1, box[1] + width + 1
            pen.text(place, label, fill=color, font=letters)
    return _tensor_of(picture)


def _box_colors(colors, count):
    if colors is None:
        colors = _palette(count)
    elif not isinstance(colors, list):
        colors = [colors] * count
    if len(colors) < count:
        raise ValueError(
            f"Number of colors ({len(colors)}) is less than number of boxes ({count})."
        )
    return [_rgb(color) for color in colors]


def _font(font, size):
    if font is not None:
        return pillow("ImageFont").truetype(font=font, size=size or 10)
    if size is not None:
        warnings.warn(
            "Argument 'font_size' will be ignored since 'font' is not set.",
            stacklevel=3,
        )
    return pillow("ImageFont").load_default()


def _tensor_of(picture):
    import numpy

    return holdfast.tensor(numpy.array(picture)).permute(2, 0, 1)


@holdfast.no_grad()
def draw_segmentation_masks(image, masks, alpha=0.8, colors=None):
    """A copy of an image with masks tinted: [3, H, W] uint8.

    `image`: [3, H, W] uint8. `masks`: [N, H, W] or [H, W] bool; a later one covers
    an earlier one. `alpha`: 0 leaves the image, 1 covers it. `colors`: one for all
    or N, names or (r, g, b).
    """
    _check_image(
        image, (3,), "Pass an RGB image. Other Image formats are not supported"
    )
    if masks.ndim == 2:
        masks = masks.unsqueeze(0)
    if masks.ndim != 3:
        raise ValueError(
            "masks must be of shape (H, W) or (batch_size, H, W). Got "
            f"{tuple(masks.shape)}."
        )
    if masks.dtype != holdfast.bool:
        raise ValueError(f"The masks must be of dtype bool. Got {masks.dtype}")
    if masks.shape[-2:] != image.shape[-2:]:
        raise ValueError(
            "The image and the masks must have the same height and width. Got "
            f"{tuple(image.shape[-2:])} and {tuple(masks.shape[-2:])}."
        )
    count = masks.shape[0]
    if count == 0:
        warnings.warn("masks doesn't contain any mask. No mask was drawn", stacklevel=2)
        return image
    drawn = image
    for mask, color in zip(masks, _mask_colors(colors, count), strict=False):
        tint = holdfast.tensor(color, dtype=holdfast.uint8, device=image.device)
        drawn = holdfast.where(mask, tint.view(3, 1, 1), drawn)
    return (image * (1 - alpha) + drawn * alpha).to(holdfast.uint8)


def _mask_colors(colors, count):
    if colors is None:
        colors = _palette(count)
    elif not isinstance(colors, list):
        colors = [colors] * count
    if count > len(colors):
        raise ValueError(f"There are more masks ({count}) than colors ({len(colors)})")
    if not isinstance(colors[0], (tuple, str)):
        raise ValueError(
            "colors must be a tuple or a string, or a list thereof. Got "
            f"{type(colors[0]).__name__}."
        )
    return [_rgb(color) for color in colors]


def _check_image(image, channels, message):
    if not isinstance(image, holdfast.Tensor):
        raise TypeError(f"Tensor expected, got {type(image)}")
    if image.dtype != holdfast.uint8:
        raise ValueError(f"Tensor uint8 expected, got {image.dtype}")
    if image.dim() != 3:
        raise ValueError(
            f"Pass individual images, not batches. Got {tuple(image.shape)}."
        )
    if image.size(0) not in channels:
        raise ValueError(f"{message}. Got {image.size(0)} channels.")


def _rgb(color):
    """(r, g, b) of a name or of a tuple."""
    if isinstance(color, str):
        return pillow("ImageColor").getrgb(color)
    return tuple(color)


def _palette(count):
    """Colours that are easy to tell apart: multiples of three large numbers."""
    steps = (1 << 25) - 1, (1 << 15) - 1, (1 << 21) - 1
    return [tuple(number * step % 255 for step in steps) for number in range(count)]
