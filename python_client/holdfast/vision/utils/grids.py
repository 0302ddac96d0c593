# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Images side by side."""

import holdfast

from ..pillow import pillow

_LEAST_RANGE = 1e-5


@holdfast.no_grad()
def make_grid(
    tensor,
    nrow=8,
    padding=2,
    normalize=False,
    value_range=None,
    scale_each=False,
    pad_value=0.0,
):
    """One image [C, H', W'] of the images of a batch, `nrow` beside each other.

    `tensor`: [N, C, H, W], [C, H, W], [H, W], or a list of images of one size; one
    channel becomes three. `padding` pixels of `pad_value` lie around each image; a
    single image is returned as it is. `normalize` takes the values from
    `value_range` (min, max), by default that of all images, with `scale_each` of
    each by itself, to 0 to 1. Asks the daemon nothing. TypeError for anything but
    tensors.
    """
    if nrow < 1 or padding < 0:
        raise ValueError(
            "make_grid needs nrow of at least 1 and padding of at least 0. Got "
            f"nrow={nrow}, padding={padding}."
        )
    images = _batch(tensor)
    if images.size(1) == 1:
        images = images.repeat(1, 3, 1, 1)
    if normalize:
        images = _normalized(images, value_range, scale_each)
    count, channels, height, width = images.shape
    if count == 1:
        return images.squeeze(0)
    columns = min(nrow, count)
    rows = -(-count // columns)
    height, width = height + padding, width + padding
    # Every image with the padding above it and on its left is a cell.
    cells = images.new_full((rows * columns, channels, height, width), pad_value)
    cells[:count, :, padding:, padding:] = images
    cells = cells.view(rows, columns, channels, height, width).permute(2, 0, 3, 1, 4)
    size = rows * height + padding, columns * width + padding
    grid = images.new_full((channels, *size), pad_value)
    grid[:, : rows * height, : columns * width] = cells.reshape(
        channels, rows * height, columns * width
    )
    return grid


def _batch(tensor):
    """[N, C, H, W] of what make_grid takes."""
    if isinstance(tensor, list):
        for image in tensor:
            if not isinstance(image, holdfast.Tensor):
                raise TypeError(
                    "tensor or list of tensors expected, got a list containing "
                    f"{type(image)}"
                )
        tensor = holdfast.stack(tensor)
    elif not isinstance(tensor, holdfast.Tensor):
        raise TypeError(f"tensor or list of tensors expected, got {type(tensor)}")
    if not 2 <= tensor.dim() <= 4 or tensor.size(0) == 0:
        raise ValueError(
            "make_grid takes images [N, C, H, W], [C, H, W] or [H, W]. Got "
            f"{list(tensor.shape)}."
        )
    while tensor.dim() < 4:
        tensor = tensor.unsqueeze(0)
    return tensor


def _normalized(images, value_range, scale_each):
    if value_range is not None:
        if not isinstance(value_range, tuple):
            raise TypeError(
                "value_range has to be a tuple (min, max) if specified. min and max "
                f"are numbers. Got {value_range!r}."
            )
        low, high = value_range
        images = images.clamp(min=low, max=high)
        return images.sub(low).div(max(high - low, _LEAST_RANGE))
    sizes = (1, 2, 3) if scale_each else (0, 1, 2, 3)
    low, high = images.amin(sizes, True), images.amax(sizes, True)
    return images.sub(low).div(high.sub(low).clamp(min=_LEAST_RANGE))


@holdfast.no_grad()
def save_image(tensor, fp, format=None, **kwargs):
    """Writes an image, or the grid of several, with Pillow.

    `tensor`: floats of 0 to 1, else see make_grid, which gets `kwargs`. `fp`: a path
    or an open file, for which `format` ("png") must be said.
    """
    grid = make_grid(tensor, **kwargs).mul(255).add(0.5).clamp(0, 255)
    pixels = grid.to(holdfast.uint8).permute(1, 2, 0).contiguous().cpu().numpy()
    pillow().fromarray(pixels).save(fp, format=format)
