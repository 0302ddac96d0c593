# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Filling and making tensors."""

import math

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


def _as(value, dtype):
    """A number as PyTorch's kernels read it: of the result's type."""
    return torch.tensor(value, dtype=dtype).item()


@declare("arange.start_out")
def arange_out(start, end, step=1, *, out):
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) / step < 0:
        raise RuntimeError(
            "upper bound and lower bound inconsistent with step sign: "
            f"arange({start}, {end}, {step})"
        )
    if not out.dtype.is_floating_point:
        # As many as the numbers given make, of their integer parts.
        count = max(math.ceil((end - start) / step), 0)
        start, step = int(start), int(step)
        places = hf.arange(count, dtype=hf.int64)
        return _give(out, from_holdfast(start + step * places))
    narrow = out.dtype in (torch.float16, torch.bfloat16)
    dtype = torch.float32 if narrow else out.dtype
    made = hf.arange(start, end, step, dtype=to_holdfast(dtype))
    return _give(out, from_holdfast(made))


def _steps(start, end, steps, dtype):
    """linspace() in float64 or complex128, each half from its own end."""
    start, end = _as(start, dtype), _as(end, dtype)
    places = from_holdfast(hf.arange(steps, dtype=hf.float64))
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    return torch.where(
        places < steps // 2, start + step * places, end - step * (steps - 1 - places)
    )


@declare("linspace.out")
def linspace_out(start, end, steps, *, out):
    if steps == 1:
        return out.resize_(1).fill_(start)
    return _give(out, _steps(start, end, steps, out.dtype))


@declare("logspace.out")
def logspace_out(start, end, steps, base=10.0, *, out):
    if steps == 1:
        return out.resize_(1).fill_(base**start)
    return _give(out, base ** _steps(start, end, steps, out.dtype))


@declare("_efficientzerotensor")
def _efficientzerotensor(size, *, dtype=None, **kwargs):
    return torch.zeros(size, dtype=dtype, device="holdfast")


@declare("complex.out")
def complex_out(real, imag, *, out):
    made = _complex(real, imag)
    if out.dtype != made.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {made.dtype} but got scalar type "
            f"{out.dtype} for argument 'out'"
        )
    return _give(out, made)


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
