# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Fourier transforms."""

import math

import holdfast as hf
from holdfast import _C

from holdfast_torch.composites import declare_holdfast as composite

_ops = _C.ops


def _scale(shape, dim, normalization):
    count = math.prod(shape[d] for d in dim)
    return (1.0, count**-0.5, 1.0 / count)[normalization]


@composite("_fft_c2c")
def _fft_c2c(self, dim, normalization, forward):
    scale = _scale(self.shape, dim, normalization)
    return _ops.fft_c2c(self, tuple(dim), scale, forward)


@composite("_fft_r2c")
def _fft_r2c(self, dim, normalization, onesided):
    scale = _scale(self.shape, dim, normalization)
    if onesided:
        return _ops.fft_r2c(self, tuple(dim), scale)
    wide = hf.complex(self, hf.zeros_like(self))
    return _ops.fft_c2c(wide, tuple(dim), scale, True)


@composite("_fft_c2r")
def _fft_c2r(self, dim, normalization, last_dim_size):
    sizes = list(self.shape)
    sizes[dim[-1]] = last_dim_size
    scale = _scale(sizes, dim, normalization)
    return _ops.fft_c2r(self, tuple(dim), scale, last_dim_size)
