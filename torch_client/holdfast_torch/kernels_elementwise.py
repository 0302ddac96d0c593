# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Elementwise operators that PyTorch and the daemon's package call differently."""

import holdfast as hf
import torch
from holdfast import _C

from holdfast_torch.composites import declare, declare_holdfast as composite

_ops = _C.ops


def _shift(name, function):
    for overload in ("Scalar", "Tensor"):

        @declare(f"__{name}__.{overload}")
        def kernel(self, other):
            return function(self, other)

        @declare(f"__i{name}__.{overload}")
        def in_place(self, other):
            return self.copy_(function(self, other))


_shift("lshift", torch.bitwise_left_shift)
_shift("rshift", torch.bitwise_right_shift)


@declare("frexp.Tensor_out")
def frexp_out(self, *, mantissa, exponent):
    for out, value in zip((mantissa, exponent), _frexp(self)):
        if out.shape != value.shape:
            out.resize_(value.shape)
        out.copy_(value)
    return mantissa, exponent


@composite("frexp.Tensor")
def _frexp(self):
    return tuple(hf.frexp(self))


@composite("nan_to_num")
def nan_to_num(self, nan=None, posinf=None, neginf=None):
    return hf.nan_to_num(self, 0.0 if nan is None else nan, posinf, neginf)


@composite("angle")
def angle(self):
    return hf.angle(self)


@composite("_conj_physical")
def _conj_physical(self):
    return _ops.conj(self)


@declare("conj_physical_")
def conj_physical_(self):
    # The elements as they lie: a lazily conjugated tensor's are not the ones it shows.
    plain = self.conj() if self.is_conj() else self
    plain.copy_(_conj_physical(plain))
    return self


@declare("conj_physical.out")
def conj_physical_out(self, *, out):
    if out.shape != self.shape:
        out.resize_(self.shape)
    return out.copy_(_conj_physical(self))


@composite("mvlgamma")
def mvlgamma(self, p):
    return hf.mvlgamma(self, p)


@declare("_masked_scale")
def _masked_scale(self, mask, scale):
    return self * mask.to(self.dtype) * scale


@declare("_assert_async", "_assert_async.msg")
def _assert_async(self, assert_msg="Expected Tensor with single nonzero value"):
    if not bool(self):
        raise RuntimeError(assert_msg)
