# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Pooling over windows of [N, C, ...] or [C, ...] with one to three sizes."""

from . import functional as F
from .functional.sizes import spread
from .module import Module


class _MaxPool(Module):
    axes = 0

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        return_indices=False,
        ceil_mode=False,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input):
        return (F.max_pool1d, F.max_pool2d, F.max_pool3d)[self.axes - 1](
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """Largest element of each window of L.

    `stride` defaults to `kernel_size`; padding counts as minus infinity.
    `return_indices` adds the int64 positions in L.
    """

    axes = 1


class MaxPool2d(_MaxPool):
    """Largest element of each window of H, W; see MaxPool1d."""

    axes = 2


class MaxPool3d(_MaxPool):
    """Largest element of each window of D, H, W; see MaxPool1d."""

    axes = 3


class _MaxUnpool(Module):
    axes = 0

    def __init__(self, kernel_size, stride=None, padding: int | tuple[int, ...] = 0):
        super().__init__()
        self.kernel_size = spread(kernel_size, self.axes)
        self.stride = spread(kernel_size if stride is None else stride, self.axes)
        self.padding = spread(padding, self.axes)

    def forward(self, input, indices, output_size=None):
        return (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self.axes - 1](
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}"
        )


class MaxUnpool1d(_MaxUnpool):
    """Zeros, with MaxPool1d's results at the indices it returned."""

    axes = 1


class MaxUnpool2d(_MaxUnpool):
    """Zeros, with MaxPool2d's results at the indices it returned."""

    axes = 2


class MaxUnpool3d(_MaxUnpool):
    """Zeros, with MaxPool3d's results at the indices it returned."""

    axes = 3


class AvgPool1d(Module):
    """Mean of each window of L; `stride` defaults to `kernel_size`."""

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding: int | tuple[int, ...] = 0,
        ceil_mode=False,
        count_include_pad=True,
    ):
        super().__init__()
        self.kernel_size = spread(kernel_size, 1)
        self.stride = spread(stride if stride is not None else kernel_size, 1)
        self.padding = spread(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}"
        )


class _AvgPool(Module):
    axes = 0

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding: int | tuple[int, ...] = 0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input):
        return (F.avg_pool2d, F.avg_pool3d)[self.axes - 2](
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}"
        )


class AvgPool2d(_AvgPool):
    """Mean of each window of H, W; `divisor_override` replaces the window's size."""

    axes = 2


class AvgPool3d(_AvgPool):
    """Mean of each window of D, H, W; see AvgPool2d."""

    axes = 3


class _LPPool(Module):
    axes = 0

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input):
        return (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[self.axes - 1](
            input,
            float(self.norm_type),
            self.kernel_size,
            self.stride,
            self.ceil_mode,
        )

    def extra_repr(self):
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """(sum of x^norm_type)^(1/norm_type) over windows of L."""

    axes = 1


class LPPool2d(_LPPool):
    """(sum of x^norm_type)^(1/norm_type) over windows of H, W."""

    axes = 2


class LPPool3d(_LPPool):
    """(sum of x^norm_type)^(1/norm_type) over windows of D, H, W."""

    axes = 3


class _AdaptiveAvgPool(Module):
    axes = 0

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        functions = (
            F.adaptive_avg_pool1d,
            F.adaptive_avg_pool2d,
            F.adaptive_avg_pool3d,
        )
        return functions[self.axes - 1](input, self.output_size)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Mean over windows chosen so that the output is `output_size` (None keeps)."""

    axes = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Mean over windows chosen so that the output is `output_size` (H, W)."""

    axes = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Mean over windows chosen so that the output is `output_size` (D, H, W)."""

    axes = 3


class _AdaptiveMaxPool(Module):
    axes = 0

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input):
        functions = (
            F.adaptive_max_pool1d,
            F.adaptive_max_pool2d,
            F.adaptive_max_pool3d,
        )
        return functions[self.axes - 1](input, self.output_size, self.return_indices)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Largest element of windows chosen so that the output is `output_size`."""

    axes = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Largest element of windows chosen so that the output is `output_size`."""

    axes = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Largest element of windows chosen so that the output is `output_size`."""

    axes = 3


class _FractionalMaxPool(Module):
    axes = 0

    def __init__(
        self,
        kernel_size,
        output_size=None,
        output_ratio=None,
        return_indices=False,
        _random_samples=None,
    ):
        super().__init__()
        axes = self.axes
        self.kernel_size = spread(kernel_size, axes)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        if (output_size is None) == (output_ratio is None):
            raise ValueError(
                f"FractionalMaxPool{axes}d requires specifying either an output size, "
                "or a pooling ratio, and not both"
            )
        self.output_size = None if output_size is None else spread(output_size, axes)
        ratio = output_ratio
        if ratio is not None and not isinstance(ratio, (tuple, list)):
            ratio = (ratio,) * axes
        if ratio is not None and not all(0 < r < 1 for r in ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {ratio})")
        self.output_ratio = ratio

    def forward(self, input):
        functions = (F.fractional_max_pool2d, F.fractional_max_pool3d)
        return functions[self.axes - 2](
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """Largest elements of windows of H, W at random steps."""

    axes = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """Largest elements of windows of D, H, W at random steps."""

    axes = 3
