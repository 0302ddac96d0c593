# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Order: sorting, ranks, medians, searches, different elements."""

import holdfast as hf
from holdfast import _C

from holdfast_torch.composites import declare_holdfast as composite

_ops = _C.ops


@composite("sort.stable", "sort")
def sort(self, dim=-1, descending=False, *, stable=None):
    return tuple(_ops.sort(self, dim, descending))


@composite("median.dim")
def median_dim(self, dim, keepdim=False):
    return tuple(hf.median(self, dim, keepdim))


@composite("nanmedian.dim")
def nanmedian_dim(self, dim, keepdim=False):
    return tuple(hf.nanmedian(self, dim, keepdim))


@composite("median")
def median(self):
    return hf.median(self)


@composite("nanmedian")
def nanmedian(self):
    return hf.nanmedian(self)


@composite("max.dim")
def max_dim(self, dim, keepdim=False):
    return tuple(hf.max(self, dim, keepdim))


@composite("min.dim")
def min_dim(self, dim, keepdim=False):
    return tuple(hf.min(self, dim, keepdim))


@composite("max")
def max(self):
    return hf.max(self)


@composite("min")
def min(self):
    return hf.min(self)


@composite("aminmax")
def aminmax(self, *, dim=None, keepdim=False):
    return tuple(hf.aminmax(self, dim=dim, keepdim=keepdim))


@composite("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(
    sorted_sequence, self, *, out_int32=False, right=False, side=None, sorter=None
):
    return hf.searchsorted(
        sorted_sequence,
        self,
        out_int32=out_int32,
        right=right,
        side=side,
        sorter=sorter,
    )


@composite("bucketize.Tensor", "bucketize.Scalar")
def bucketize(self, boundaries, *, out_int32=False, right=False):
    if not isinstance(self, hf.Tensor):
        self = hf.tensor(self, dtype=boundaries.dtype)
    return hf.bucketize(self, boundaries, out_int32=out_int32, right=right)


@composite("_unique2")
def _unique2(self, sorted=True, return_inverse=False, return_counts=False):
    values, inverse, counts = _ops.unique(self.reshape(-1), True, True, True)
    return values, inverse.reshape(self.shape), counts


@composite("_unique")
def _unique(self, sorted=True, return_inverse=False):
    values, inverse, _ = _ops.unique(self.reshape(-1), True, True, False)
    return values, inverse.reshape(self.shape)


@composite("unique_dim")
def unique_dim(self, dim, sorted=True, return_inverse=False, return_counts=False):
    return tuple(hf.unique(self, sorted, True, True, dim))


@composite("unique_consecutive")
def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):
    return tuple(hf.unique_consecutive(self, True, True, dim))


@composite("unique_dim_consecutive")
def unique_dim_consecutive(self, dim, return_inverse=False, return_counts=False):
    return tuple(hf.unique_consecutive(self, True, True, dim))
