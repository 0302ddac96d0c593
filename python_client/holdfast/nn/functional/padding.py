# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Padding with a constant or with what the tensor holds."""

from holdfast import _C

from .sizes import shape_text

__all__ = ["pad"]

_ops = _C.ops


def pad(input, pad, mode="constant", value=None):
    """Pads; `pad` lists (before, after) from the last dimension on.

    "constant" pads any dimensions with `value` (0 by default). "reflect",
    "replicate" and "circular" pad the last one to three dimensions of a tensor
    that has one or two more. Negative amounts crop.
    """
    pad = tuple(pad)
    if mode == "constant":
        return _ops.constant_pad(input, pad, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    axes = len(pad) // 2
    if len(pad) % 2 or axes not in (1, 2, 3) or input.dim() not in (axes + 1, axes + 2):
        raise NotImplementedError(
            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported "
            f"for now. Got {len(pad)} amounts for an input of {input.dim()} dimensions."
        )
    result = input
    for i in range(axes):
        result = _pad_dim(result, input.dim() - 1 - i, pad[2 * i : 2 * i + 2], mode)
    # In memory of its own; amounts below 0 alone leave a view.
    return _ops.clone(result) if max(pad) <= 0 else result


def _pad_dim(input, dim, sides, mode):
    if min(sides) < 0:
        start, end = -min(sides[0], 0), input.shape[dim] + min(sides[1], 0)
        if start >= end and mode == "replicate" and sum(sides) + input.shape[dim] > 0:
            return _replicate(input, dim, *sides)
        if start >= end:
            raise RuntimeError(
                f"[pad] padding {sides} leaves nothing of dimension {dim} of input "
                f"{shape_text(input)}"
            )
        input = _ops.slice(input, dim, start, end)
        sides = [max(n, 0) for n in sides]
    before, after = sides
    if before == after == 0:
        return input
    size = input.shape[dim]
    _check(mode, before, after, dim, size, input)
    pieces = []
    if before:
        pieces.append(_border(input, dim, mode, before, size, first=True))
    pieces.append(input)
    if after:
        pieces.append(_border(input, dim, mode, after, size, first=False))
    return _ops.cat(pieces, dim)


def _replicate(input, dim, before, after):
    """Crops all of one side away: what the other side repeats is the last entry."""
    size = input.shape[dim]
    place = _ops.clamp(_ops.arange(-before, size + after), 0, size - 1)
    return _ops.index_select(input, dim, place)


def _check(mode, before, after, dim, size, input):
    if mode == "reflect" and max(before, after) >= size:
        raise RuntimeError(
            "[pad] Padding size should be less than the corresponding input "
            f"dimension, but got: padding ({before}, {after}) at dimension {dim} "
            f"of input {shape_text(input)}"
        )
    if mode == "circular" and max(before, after) > size:
        raise RuntimeError(
            "[pad] Padding value causes wrapping around more than once. Got "
            f"padding ({before}, {after}) at dimension {dim} of input "
            f"{shape_text(input)}"
        )
    if size == 0:
        raise RuntimeError(
            f"[pad] Expected dimension {dim} of input to be non-zero, but got: "
            f"{shape_text(input)}"
        )


def _border(input, dim, mode, n, size, first):
    """`n` entries along dim that go before (`first`) or after the input."""
    if mode == "replicate":
        at = 0 if first else input.shape[dim] - 1
        edge = _ops.slice(input, dim, at, at + 1)
        shape = list(input.shape)
        shape[dim] = n
        return _ops.expand(edge, shape)
    if mode == "circular":
        start = size - n if first else 0
        return _ops.slice(input, dim, start, start + n)
    start = 1 if first else size - 1 - n
    return _ops.flip(_ops.slice(input, dim, start, start + n), (dim,))
