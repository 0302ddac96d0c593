# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Reductions of runs of rows."""

import math

from holdfast import _C
from holdfast._registry import function

_ops = _C.ops

# name -> (scatter_reduce's, what an empty segment is)
_REDUCTIONS = {
    "sum": ("sum", 0.0),
    "mean": ("sum", math.nan),
    "max": ("amax", -math.inf),
    "min": ("amin", math.inf),
    "prod": ("prod", 1.0),
}


def _starts(data, lengths, offsets, axis):
    """[..., S + 1]: where each segment starts, and where the last one ends."""
    if (lengths is None) == (offsets is None):
        raise RuntimeError("segment_reduce(): give either lengths or offsets")
    rows = lengths if offsets is None else offsets
    if rows.dim() != axis + 1 or tuple(rows.shape[:-1]) != tuple(data.shape[:axis]):
        raise RuntimeError(
            f"segment_reduce(): expected {axis + 1} dimensions, of which the first are "
            f"data's. Got data {list(data.shape)} and {list(rows.shape)}."
        )
    if offsets is not None:
        return _ops.to(offsets, _C.int64)
    ends = _ops.cumsum(_ops.to(lengths, _C.int64), -1)
    first = _ops.full((*ends.shape[:-1], 1), 0, dtype=_C.int64)
    return _ops.cat([first, ends], -1)


@function
def segment_reduce(
    data, reduce, *, lengths=None, offsets=None, axis=0, unsafe=False, initial=None
):
    """Rows of data along axis in consecutive segments, each reduced to one row:
    "sum", "mean", "max", "min" or "prod", begun with `initial`.

    The first `axis` dimensions are a batch. lengths [..., S], which must add up to
    data's size, or offsets [..., S + 1] say where the segments are. unsafe: without
    a look at that sum, which waits.
    """
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"segment_reduce(): no reduction {reduce!r}")
    axis = axis % max(data.dim(), 1)
    starts = _starts(data, lengths, offsets, axis)
    n, count = data.size(axis), starts.size(-1) - 1
    ends = _ops.slice(starts, -1, 1)
    if not unsafe and count > 0 and _ops.ne(ends[..., -1], n).any():
        raise RuntimeError(
            f"segment_reduce(): expected all rows of lengths to sum to {n}, the size "
            f"of data along {axis}"
        )
    batch = tuple(data.shape[:axis])
    after = data.dim() - axis - 1
    kind, empty = _REDUCTIONS[reduce]
    sizes = _ops.sub(ends, _ops.slice(starts, -1, 0, count))
    sizes = sizes.reshape(*batch, count, *(1,) * after)
    shape = [*batch, count, *data.shape[axis + 1 :]]
    begin = empty if initial is None else float(initial)
    if reduce == "mean" and initial is None:
        begin = 0.0
    # The row after the last is for rows of data that no segment has (unsafe).
    shape[axis] += 1
    result = _ops.full(shape, begin, dtype=data.dtype, device=data.device)
    if n and count:
        place = _ops.expand(_ops.arange(0, n), (*batch, n)).contiguous()
        segment = _ops.searchsorted(ends.contiguous(), place, right=True)
        segment = segment.reshape(*batch, n, *(1,) * after)
        index = _ops.expand(segment, tuple(data.shape))
        result = _ops.scatter_reduce(result, axis, index, data, kind)
    result = _ops.slice(result, axis, 0, count)
    if reduce != "mean":
        return result
    none = _ops.eq(sizes, 0)
    mean = result / _ops.to(_ops.where(none, 1, sizes), data.dtype)
    return mean if initial is not None else _ops.where(none, empty, mean)
