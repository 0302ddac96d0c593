# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Statistics."""

import holdfast as hf
from holdfast import _C

from holdfast_torch.composites import declare_holdfast as composite

_ops = _C.ops


@composite("nansum")
def nansum(self, dim=None, keepdim=False, *, dtype=None):
    dim = None if not dim else tuple(dim)
    if not self.is_floating_point():
        return _ops.sum(self, dim, keepdim, dtype=dtype)
    return hf.nansum(self, dim, keepdim, dtype=dtype)


@composite("var.correction")
def var(self, dim=None, *, correction=None, keepdim=False):
    return _moments(self, dim, correction, keepdim)[0]


@composite("std.correction")
def std(self, dim=None, *, correction=None, keepdim=False):
    return hf.sqrt(_moments(self, dim, correction, keepdim)[0])


@composite("var_mean.correction")
def var_mean(self, dim=None, *, correction=None, keepdim=False):
    return _moments(self, dim, correction, keepdim)


@composite("std_mean.correction")
def std_mean(self, dim=None, *, correction=None, keepdim=False):
    variance, mean = _moments(self, dim, correction, keepdim)
    return hf.sqrt(variance), mean


def _moments(self, dim, correction, keepdim):
    correction = 1.0 if correction is None else float(correction)
    dim = None if dim is None or len(dim) == 0 else tuple(dim)
    return _ops.var_mean(self, dim, correction, keepdim)
