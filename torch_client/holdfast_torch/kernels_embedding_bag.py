# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Bags of rows: sums, means and maxima over runs of indices."""

import holdfast as hf
from holdfast import _C

from holdfast_torch.composites import declare_holdfast as composite

_ops = _C.ops
_SUM, _MEAN, _MAX = range(3)


def _bags_of(indices, offsets, include_last_offset):
    """(the bag of each index, how many bags)."""
    count = offsets.shape[0] - bool(include_last_offset)
    starts = offsets[:count].to(_C.int64)
    places = hf.arange(indices.shape[0])
    return hf.searchsorted(starts, places, right=True) - 1, count


def _weights_of(indices, padding_idx, per_sample_weights, dtype):
    """What each row counts: 0 for padding."""
    counted = _ops.to(indices != padding_idx, dtype)
    return counted, (
        counted if per_sample_weights is None else counted * per_sample_weights
    )


def _largest(rows, bags, count, counted):
    """(maxima [count, D], which index each came from [count, D], -1 where none)."""
    width = rows.shape[1]
    spread = bags.unsqueeze(1).expand(rows.shape[0], width)
    rows = _ops.where(counted.unsqueeze(1) > 0, rows, -float("inf"))
    low = hf.full((count, width), -float("inf"), dtype=rows.dtype)
    most = _ops.scatter_reduce(low, 0, spread, rows, "amax")
    first = hf.arange(rows.shape[0] - 1, -1, -1).unsqueeze(1)
    reached = _ops.logical_and(
        rows == _ops.gather(most, 0, spread), counted.unsqueeze(1) > 0
    )
    rank = _ops.where(reached, first, -1)
    none = hf.full((count, width), -1, dtype=_C.int64)
    best = _ops.scatter_reduce(none, 0, spread, rank, "amax")
    empty = best < 0
    which = _ops.where(empty, -1, rows.shape[0] - 1 - best)
    return _ops.where(empty, 0.0, most), which


@composite("_embedding_bag", "_embedding_bag_forward_only")
def _embedding_bag(
    weight,
    indices,
    offsets,
    scale_grad_by_freq=False,
    mode=_SUM,
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=-1,
):
    if indices.dim() != 1 or offsets.dim() != 1:
        raise RuntimeError(
            f"embedding_bag: input has {indices.dim()} dimensions and offsets "
            f"{offsets.dim()}, both must have 1"
        )
    indices = indices.to(_C.int64)
    bags, count = _bags_of(indices, offsets, include_last_offset)
    rows = _ops.index_select(weight, 0, indices)
    counted, factors = _weights_of(
        indices, padding_idx, per_sample_weights, weight.dtype
    )
    ones = _ops.to(counted, _C.int64)
    sizes = _ops.index_add(hf.zeros((count,), dtype=_C.int64), 0, bags, ones)
    which = hf.empty((0,), dtype=_C.int64)
    if mode == _MAX:
        result, place = _largest(rows, bags, count, counted)
        if indices.shape[0]:
            at = _ops.index_select(indices, 0, hf.clamp(place, min=0).reshape(-1))
            which = _ops.where(place < 0, -1, at.reshape(place.shape))
        else:
            which = place
    else:
        zeros = hf.zeros((count, weight.shape[1]), dtype=weight.dtype)
        result = _ops.index_add(zeros, 0, bags, rows * factors.unsqueeze(1))
        if mode == _MEAN:
            least = hf.clamp(sizes, min=1).to(weight.dtype)
            result = result / least.unsqueeze(1)
    return result, bags, sizes, which


def _dense_backward(
    grad,
    indices,
    offset2bag,
    bag_size,
    maximum_indices,
    num_weights,
    scale_grad_by_freq,
    mode,
    per_sample_weights,
    padding_idx=-1,
):
    zeros = hf.zeros((num_weights, grad.shape[1]), dtype=grad.dtype)
    if mode == _MAX:
        found = _ops.to(maximum_indices >= 0, grad.dtype)
        return _ops.scatter_add(
            zeros, 0, hf.clamp(maximum_indices, min=0), grad * found
        )
    indices = indices.to(_C.int64)
    rows = _ops.index_select(grad, 0, offset2bag)
    factors = _weights_of(indices, padding_idx, per_sample_weights, grad.dtype)[1]
    if mode == _MEAN:
        sizes = hf.clamp(bag_size, min=1).to(grad.dtype)
        factors = factors / _ops.index_select(sizes, 0, offset2bag)
    if scale_grad_by_freq:
        often = hf.bincount(indices, minlength=num_weights).to(grad.dtype)
        factors = factors / _ops.index_select(often, 0, indices)
    return _ops.index_add(zeros, 0, indices, rows * factors.unsqueeze(1))


@composite("_embedding_bag_per_sample_weights_backward")
def _embedding_bag_per_sample_weights_backward(
    grad, weight, indices, offsets, offset2bag, mode, padding_idx=-1
):
    rows = _ops.index_select(weight, 0, indices.to(_C.int64))
    products = _ops.sum(rows * _ops.index_select(grad, 0, offset2bag), (1,), False)
    return _ops.where(indices == padding_idx, 0.0, products)


@composite("_embedding_bag_backward")
def _embedding_bag_backward(
    grad,
    indices,
    offsets,
    offset2bag,
    bag_size,
    maximum_indices,
    num_weights,
    scale_grad_by_freq,
    mode,
    sparse,
    per_sample_weights,
    padding_idx=-1,
):
    if sparse:
        raise NotImplementedError(
            "holdfast: embedding_bag with sparse=True; gradients are dense"
        )
    return _dense_backward(
        grad,
        indices,
        offset2bag,
        bag_size,
        maximum_indices,
        num_weights,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        padding_idx,
    )


@composite("_embedding_bag_dense_backward")
def _embedding_bag_dense_backward(*args, **kwargs):
    return _dense_backward(*args, **kwargs)
