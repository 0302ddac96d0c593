# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Layers that pad the last one, two or three dimensions.

`padding` is one int for all sides, or (left, right, top, bottom, front, back)
as far as there are dimensions. Inputs are [N, C, ...] or [C, ...].
"""

from . import functional as F
from .functional.sizes import spread
from .module import Module


class _Pad(Module):
    axes = 0
    mode = ""

    def __init__(self, padding):
        super().__init__()
        self.padding = spread(padding, 2 * self.axes)

    def forward(self, input):
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPad(Module):
    axes = 0

    def __init__(self, padding, value):
        super().__init__()
        self.value = value
        self.padding = spread(padding, 2 * self.axes)

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Pads the last dimension with a value."""

    axes = 1


class ConstantPad2d(_ConstantPad):
    """Pads the last two dimensions with a value."""

    axes = 2


class ConstantPad3d(_ConstantPad):
    """Pads the last three dimensions with a value."""

    axes = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad):
    """Pads the last dimension with zeros."""

    axes = 1


class ZeroPad2d(_ZeroPad):
    """Pads the last two dimensions with zeros."""

    axes = 2


class ZeroPad3d(_ZeroPad):
    """Pads the last three dimensions with zeros."""

    axes = 3


class ReflectionPad1d(_Pad):
    """Pads the last dimension with its reflection, the edge not repeated."""

    axes, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Pads the last two dimensions with their reflection."""

    axes, mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Pads the last three dimensions with their reflection."""

    axes, mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Pads the last dimension with its edges."""

    axes, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Pads the last two dimensions with their edges."""

    axes, mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Pads the last three dimensions with their edges."""

    axes, mode = 3, "replicate"


class CircularPad1d(_Pad):
    """Pads the last dimension with its other end."""

    axes, mode = 1, "circular"


class CircularPad2d(_Pad):
    """Pads the last two dimensions with their other ends."""

    axes, mode = 2, "circular"


class CircularPad3d(_Pad):
    """Pads the last three dimensions with their other ends."""

    axes, mode = 3, "circular"
