# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Convolutions."""

import math

import holdfast
from holdfast.errors import UnsupportedError

from . import functional as F
from . import init
from .functional.sizes import pair, same_padding
from .module import Module
from .parameter import Parameter


class Conv2d(Module):
    """2-D convolution (cross-correlation) of NCHW images.

    Input [N, in_channels, H, W] or [in_channels, H, W]; weight [out_channels,
    in_channels / groups, KH, KW] and bias [out_channels] start uniform in
    +-1/sqrt(fan in). `padding` is one or two ints, "valid" or, for stride 1,
    "same". `padding_mode` other than "zeros" raises NotImplementedError.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
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
        if padding_mode != "zeros":
            raise UnsupportedError(
                f"holdfast has no Conv2d(padding_mode='{padding_mode}'); only 'zeros'."
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = pair(kernel_size)
        self.stride = pair(stride)
        self.padding = padding if isinstance(padding, str) else pair(padding)
        self.dilation = pair(dilation)
        self.groups = groups
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            # Raises for what F.conv2d would refuse, where the mistake is.
            same_padding(padding, self.kernel_size, self.stride, self.dilation)
        options = {"device": device, "dtype": dtype}
        self.weight = Parameter(
            holdfast.empty(
                (out_channels, in_channels // groups, *self.kernel_size), **options
            )
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

    def forward(self, input):
        return F.conv2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.dilation,
            self.groups,
        )

    def extra_repr(self):
        text = (
            f"{self.in_channels}, {self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}"
        )
        if self.padding != (0, 0):
            text += f", padding={self.padding}"
        if self.dilation != (1, 1):
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text
