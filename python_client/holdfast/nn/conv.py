# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Convolutions and transposed convolutions of one to three dimensions."""

import math

import holdfast

from . import functional as F
from . import init
from .functional.sizes import same_padding, spread
from .module import Module
from .parameter import Parameter


class _ConvNd(Module):
    """What all of them have: weight, bias, and the text that describes them."""

    axes = 0
    transposed = False

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        output_padding,
        groups,
        bias,
        padding_mode,
        device,
        dtype,
    ):
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                "padding_mode must be one of {'zeros', 'reflect', 'replicate', "
                f"'circular'}}, but got padding_mode='{padding_mode}'"
            )
        axes = self.axes
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = spread(kernel_size, axes)
        self.stride = spread(stride, axes)
        self.padding = padding if isinstance(padding, str) else spread(padding, axes)
        self.dilation = spread(dilation, axes)
        self.output_padding = spread(output_padding, axes)
        self.groups = groups
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            # Raises for what F.conv2d would refuse, where the mistake is.
            self._sides = same_padding(
                padding, self.kernel_size, self.stride, self.dilation
            )
        else:
            self._sides = [(n, n) for n in self.padding]
        # As F.pad takes it; by PyTorch's name, since subclasses use it.
        self._reversed_padding_repeated_twice = [
            n for side in self._sides[::-1] for n in side
        ]
        into, out = in_channels // groups, out_channels
        if self.transposed:
            into, out = out_channels // groups, in_channels
        options = {"device": device, "dtype": dtype}
        self.weight = Parameter(
            holdfast.empty((out, into, *self.kernel_size), **options)
        )
        if bias:
            self.bias = Parameter(holdfast.empty((out_channels,), **options))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draws weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        axes = self.axes
        text = (
            f"{self.in_channels}, {self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}"
        )
        if self.padding != (0,) * axes:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * axes:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * axes:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _PlainConv(_ConvNd):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] | str = 0,
        dilation: int | tuple[int, ...] = 1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input, weight, bias):
        # Subclasses of programs call it with a weight of their own making.
        padding = self.padding
        if self.padding_mode != "zeros":
            amounts = self._reversed_padding_repeated_twice
            input, padding = F.pad(input, amounts, mode=self.padding_mode), 0
        function = (F.conv1d, F.conv2d, F.conv3d)[self.axes - 1]
        return function(
            input, weight, bias, self.stride, padding, self.dilation, self.groups
        )


class Conv1d(_PlainConv):
    """1-D convolution (cross-correlation).

    Input [N, in_channels, L] or [in_channels, L]; weight [out_channels,
    in_channels / groups, K] and bias [out_channels] start uniform in
    +-1/sqrt(fan in). `padding` is an int, "valid" or, for stride 1, "same";
    `padding_mode` "zeros", "reflect", "replicate" or "circular".
    """

    axes = 1


class Conv2d(_PlainConv):
    """2-D convolution (cross-correlation) of images [N, C, H, W] or [C, H, W].

    As Conv1d, with two numbers where that has one, or one for both.
    """

    axes = 2


class Conv3d(_PlainConv):
    """3-D convolution (cross-correlation) of [N, C, D, H, W] or [C, D, H, W].

    As Conv1d, with three numbers where that has one, or one for all.
    """

    axes = 3


class _ConvTranspose(_ConvNd):
    transposed = True

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] | str = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups=1,
        bias=True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(
                'Only "zeros" padding mode is supported for '
                f"{self.__class__.__name__}"
            )
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input, output_size=None):
        """`output_size` chooses among the sizes that a stride leaves open."""
        functions = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
        return functions[self.axes - 1](
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._extra(input, output_size),
            self.groups,
            self.dilation,
        )

    def _extra(self, input, output_size):
        """The output padding that gives output_size."""
        if output_size is None:
            return self.output_padding
        axes, size = self.axes, tuple(output_size)
        lead = input.dim() - axes
        if len(size) == lead + axes:
            size = size[lead:]
        if len(size) != axes:
            raise ValueError(
                f"ConvTranspose{axes}D: for {input.dim()}D input, output_size must "
                f"have {axes} or {lead + axes} elements (got {len(size)})"
            )
        low = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                input.shape[lead:],
                self.stride,
                self.padding,
                self.dilation,
                self.kernel_size,
            )
        ]
        high = [n + s - 1 for n, s in zip(low, self.stride)]
        if any(not a <= n <= b for a, n, b in zip(low, size, high)):
            raise ValueError(
                f"requested an output size of {size}, but valid sizes range from "
                f"{low} to {high} (for an input of {tuple(input.shape[lead:])})"
            )
        return tuple(n - a for n, a in zip(size, low))


class ConvTranspose1d(_ConvTranspose):
    """1-D transposed convolution: the input gradient of Conv1d, as a layer.

    Input [N, in_channels, L] or [in_channels, L]; weight [in_channels,
    out_channels / groups, K]. The output has (L - 1) * stride - 2 * padding +
    dilation * (K - 1) + output_padding + 1 elements per channel.
    """

    axes = 1


class ConvTranspose2d(_ConvTranspose):
    """2-D transposed convolution of [N, C, H, W] or [C, H, W]; see ConvTranspose1d."""

    axes = 2


class ConvTranspose3d(_ConvTranspose):
    """3-D transposed convolution of [N, C, D, H, W]; see ConvTranspose1d."""

    axes = 3
