# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Resampling: planes resized, and elements at given positions."""

import holdfast as hf
import holdfast.nn.functional.resampling as _resampling
from holdfast import _C

from holdfast_torch.composites import declare_holdfast as composite, gradients

F = hf.nn.functional

# Prefix of an operator -> the daemon's mode, whether align_corners is an argument.
_MODES = {
    "upsample_nearest": ("nearest", False),
    "_upsample_nearest_exact": ("nearest-exact", False),
    "upsample_linear": ("linear", True),
    "upsample_bilinear": ("linear", True),
    "upsample_bicubic": ("cubic", True),
    "upsample_trilinear": ("linear", True),
}
_ANTIALIASED = {
    "_upsample_bilinear2d_aa": "linear-antialias",
    "_upsample_bicubic2d_aa": "cubic-antialias",
}
_NAMES = (
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d "
    "upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d "
).split()


def _split(rest, aligned):
    """(align_corners, scales) of an operator's last arguments."""
    align, scales = (bool(rest[0]), rest[1:]) if aligned else (False, rest)
    return align, [float(s) if s is not None and s > 0 else 0.0 for s in scales]


def _check(input_size, output_size):
    if 0 in tuple(input_size)[1:] or min(output_size) < 1:
        raise RuntimeError(
            "Non-empty 4D data tensor expected: input and output sizes should be "
            f"greater than 0, but got input {tuple(input_size)}, output {output_size}"
        )


def _forward(name, mode, aligned):
    @composite(name)
    def kernel(self, output_size, *rest):
        sizes = tuple(output_size)
        _check(self.shape, sizes)
        align, scales = _split(rest, aligned)
        scales += [0.0] * (len(sizes) - len(scales))
        if mode.startswith("nearest") and not self.is_floating_point():
            exact = mode == "nearest-exact"
            return _resampling._nearest_elements(self, sizes, scales, exact)
        return _resampling._resize(self, sizes, scales, mode, align)


def _backward(name, mode, aligned):
    @composite(name + "_backward")
    def kernel(grad_output, output_size, input_size, *rest):
        sizes = tuple(output_size)
        align, scales = _split(rest, aligned)
        scales += [0.0] * (len(sizes) - len(scales))
        zeros = hf.zeros(tuple(input_size), dtype=grad_output.dtype)
        return gradients(
            lambda x: _resampling._resize(x, sizes, scales, mode, align),
            grad_output,
            zeros,
        )[0]


for _name in _NAMES:
    _mode, _aligned = _MODES[_name[:-2]]
    _forward(_name, _mode, _aligned)
    _backward(_name, _mode, _aligned)
for _name, _mode in _ANTIALIASED.items():
    _forward(_name, _mode, True)
    _backward(_name, _mode, True)


def _widened(x):
    """Positions in float32 at least: those of bfloat16 are pixels apart."""
    return _C.ops.to(x, _C.float32) if x.dtype in (_C.float16, _C.bfloat16) else x


def _grid(dims, function):
    @composite(f"grid_sampler_{dims}d")
    def forward(input, grid, interpolation_mode, padding_mode, align_corners):
        modes = interpolation_mode, padding_mode, align_corners
        wide = (_widened(x) for x in (input, grid))
        return _C.ops.to(function(*wide, *modes), input.dtype)

    @composite(f"grid_sampler_{dims}d_backward")
    def backward(grad_output, input, grid, interpolation, padding, align, output_mask):
        grads = gradients(
            lambda x, at: function(x, at, interpolation, padding, align),
            *(_widened(x) for x in (grad_output, input, grid)),
        )
        found = (
            hf.zeros_like(x) if g is None else _C.ops.to(g, x.dtype)
            for g, x in zip(grads, (input, grid))
        )
        return tuple(g if wanted else None for g, wanted in zip(found, output_mask))


_grid(2, hf.grid_sampler_2d)
_grid(3, hf.grid_sampler_3d)
