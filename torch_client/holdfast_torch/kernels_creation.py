# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Filling and making tensors."""

import holdfast as hf
import torch

from holdfast_torch.composites import (
    declare,
    declare_holdfast as composite,
    from_holdfast,
    to_holdfast,
)


@declare("zero_")
def zero_(self):
    return self.fill_(0)


@declare("fill_.Tensor")
def fill_by_tensor_(self, value):
    if value.dim() != 0:
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{value.dim()} dimensions."
        )
    return self.copy_(value)


def _sequence(name, function):
    @declare(name)
    def kernel(*args, out):
        made = function(*args, dtype=to_holdfast(out.dtype))
        return _give(out, from_holdfast(made))


_sequence("arange.start_out", hf.arange)
_sequence("linspace.out", hf.linspace)
_sequence("logspace.out", hf.logspace)


@declare("_efficientzerotensor")
def _efficientzerotensor(size, *, dtype=None, **kwargs):
    return torch.zeros(size, dtype=dtype, device="holdfast")


@declare("complex.out")
def complex_out(real, imag, *, out):
    return _give(out, _complex(real, imag))


@declare("polar.out")
def polar_out(abs, angle, *, out):
    return _give(out, _polar(abs, angle))


def _give(out, value):
    if out.shape != value.shape:
        out.resize_(value.shape)
    return out.copy_(value)


@composite()
def _complex(real, imag):
    return hf.complex(real, imag)


@composite()
def _polar(abs, angle):
    return hf.polar(abs, angle)
