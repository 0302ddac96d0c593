# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Sorting, selecting and searching. NaN counts as the largest value."""


from holdfast import _C
from holdfast._registry import both, function
from holdfast.dtypes import promote_types
from holdfast.return_types import named_result
from holdfast.shapes import _wrap, movedim

_ops = _C.ops
Tensor = _C.Tensor

_sort_result = named_result("sort", ["values", "indices"])
_topk_result = named_result("topk", ["values", "indices"])
_kthvalue_result = named_result("kthvalue", ["values", "indices"])
_median_result = named_result("median", ["values", "indices"])
_nanmedian_result = named_result("nanmedian", ["values", "indices"])
_mode_result = named_result("mode", ["values", "indices"])


@both(out=True)
def sort(input, dim=-1, descending=False, stable=False):
    """(values, indices) in order along dim. Always stable."""
    return _sort_result(*_ops.sort(input, dim, descending))


@both(out=True)
def argsort(input, dim=-1, descending=False, stable=False):
    """Indices that sort() gives."""
    return _ops.sort(input, dim, descending)[1]


@both(out=True)
def msort(input):
    """Values in order along the first dimension."""
    return _ops.sort(input, 0)[0]


@both(out=True)
def topk(input, k, dim=-1, largest=True, sorted=True):
    """(values, indices) of the k largest or smallest along dim; RuntimeError if k
    is out of range. Of equal values the first are taken."""
    return _topk_result(
        *_ops.topk(input, k, -1 if dim is None else dim, largest, sorted)
    )


@both(out=True)
def kthvalue(input, k, dim=-1, keepdim=False):
    """(values, indices) of the k-th smallest along dim, k from 1."""
    return _kthvalue_result(*_ops.kthvalue(input, k, dim, keepdim))


def _median(input, dim, keepdim, ignore_nan, result_type):
    if dim is not None:
        return result_type(*_ops.median(input, dim, keepdim, ignore_nan))
    if input.numel() == 0:
        nan = float("nan")
        return _ops.full((), nan, dtype=input.dtype, device=input.device)
    value = _ops.median(input.reshape(-1), 0, False, ignore_nan)[0]
    if not value.requires_grad:
        return value
    # All that equal it share the gradient, which is how amax differentiates.
    value = value.detach()
    equal = _ops.logical_or(_ops.eq(input, value), _ops.isnan(value))
    return _C.show_as(_ops.amax(input[equal]), "MedianBackward0", input)


@both(out=True)
def median(input, dim=None, keepdim=False):
    """The lower median: of all elements, or (values, indices) along dim. NaN if
    there is one."""
    return _median(input, dim, keepdim, False, _median_result)


@both(out=True)
def nanmedian(input, dim=None, keepdim=False):
    """median() of the elements that are not NaN."""
    return _median(input, dim, keepdim, True, _nanmedian_result)


@both(out=True)
def mode(input, dim=-1, keepdim=False):
    """(values, indices) of the most frequent value along dim, the smallest of
    several; the index is its last."""
    return _mode_result(*_ops.mode(input, dim, keepdim))


@both(out=True)
def searchsorted(
    sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None
):
    """Where each value of input (a tensor or a number) would be inserted in the
    last dimension of sorted_sequence: before equals, or after them to the right.
    sorter: the indices that sort sorted_sequence."""
    if side not in (None, "left", "right"):
        raise RuntimeError(
            "torch.searchsorted(): side can only be 'left' or 'right' but got " + side
        )
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side "
            "of left while right was True"
        )
    if not isinstance(input, Tensor):
        if sorted_sequence.dim() != 1:
            raise RuntimeError(
                "torch.searchsorted(): input value can be a scalar only when "
                "boundaries tensor dimension is 1, but we got "
                f"dim({sorted_sequence.dim()})"
            )
        input = _ops.full((), input, dtype=sorted_sequence.dtype)
    if sorter is not None:
        if tuple(sorter.shape) != tuple(sorted_sequence.shape):
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, "
                f"but got boundary tensor {list(sorted_sequence.shape)} and got "
                f"sorter tensor {list(sorter.shape)}"
            )
        if sorter.dtype is not _C.int64:
            raise RuntimeError(
                "torch.searchsorted(): sorter must be a tensor of long dtype but got "
                f"dtype {sorter.dtype}"
            )
        sorted_sequence = _ops.gather(sorted_sequence, -1, sorter)
    return _ops.searchsorted(
        sorted_sequence, input, out_int32, right or side == "right"
    )


@both(out=True)
def bucketize(input, boundaries, *, out_int32=False, right=False):
    """The number of the bucket between 1-D sorted boundaries that each value of
    input falls into."""
    if boundaries.dim() != 1:
        raise RuntimeError(
            "boundaries tensor must be 1 dimension, but got " f"dim({boundaries.dim()})"
        )
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@function(out=True)
def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """True where an element is among test_elements; tensors or numbers, one of
    them a tensor."""
    if not isinstance(elements, Tensor):
        elements = _ops.full((), elements, dtype=test_elements.dtype)
    if not isinstance(test_elements, Tensor):
        found = _ops.eq(elements, test_elements)
    elif test_elements.numel() == 0:
        found = _ops.full(tuple(elements.shape), False, device=elements.device)
    else:
        common = promote_types(elements.dtype, test_elements.dtype)
        elements = _ops.to(elements, common)
        known = _ops.sort(_ops.to(test_elements, common).reshape(-1))[0]
        place = _ops.searchsorted(known, elements)
        place = _ops.clamp(place, max=known.numel() - 1)
        near = _ops.index_select(known, 0, place.reshape(-1))
        found = _ops.eq(_ops.view(near, tuple(elements.shape)), elements)
    return _ops.logical_not(found) if invert else found


def _first_of_runs(values, dim):
    """Bool [n]: True where the entry along dim differs from the one before."""
    n = values.size(dim)
    first = _ops.full((min(n, 1),), True)
    if n < 2:
        return first
    changed = _ops.ne(_ops.slice(values, dim, 1), _ops.slice(values, dim, 0, -1))
    others = [d for d in range(values.dim()) if d != dim]
    if others:
        changed = _ops.any(changed, others)
    return _ops.cat([first, changed])


def _unique_slices(values, dim, order, return_inverse, return_counts):
    """The first of every run of equal slices along dim; order: the indices that
    led to values, or None."""
    starts = _first_of_runs(values, dim)
    results = [_ops.index_mask(values, dim, starts)]
    if return_inverse or return_counts:
        run = _ops.cumsum(starts, 0) - 1
    if return_inverse:
        inverse = run if order is None else _ops.scatter(run, 0, order, run)
        results.append(inverse)
    if return_counts:
        results.append(_ops.unique(run, False, False, True)[2])
    return tuple(results) if len(results) > 1 else results[0]


def _unique_elements(input, sorted, return_inverse, return_counts):
    values, inverse, counts = _ops.unique(
        input.reshape(-1), sorted, return_inverse, return_counts
    )
    if not (return_inverse or return_counts):
        return values
    results = [values]
    if return_inverse:
        results.append(_ops.view(inverse, tuple(input.shape)))
    if return_counts:
        results.append(counts)
    return tuple(results)


def _check_unique_dim(name, input, dim):
    dim = _wrap(dim, input.dim())
    if input.numel() == 0 and input.size(dim):
        raise RuntimeError(
            f"{name}: There are 0 sized dimensions, and they aren't selected, so "
            "unique cannot be applied"
        )
    return dim


@both
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements in order, or the different slices along dim; with
    inverse, where each element went; with counts, how often each occurs. Their
    number is known when somebody looks."""
    input = input.detach()
    if dim is None:
        return _unique_elements(input, True, return_inverse, return_counts)
    dim = _check_unique_dim("unique", input, dim)
    n = input.size(dim)
    rows = movedim(input, dim, 0).reshape(n, -1) if n else input.reshape(0, 0)
    order = _ops.lexsort(rows)
    values = _ops.index_select(input, dim, order)
    return _unique_slices(values, dim, order, return_inverse, return_counts)


@both
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """unique() of neighbours only, in the order in which they are."""
    input = input.detach()
    if dim is None:
        return _unique_elements(input, False, return_inverse, return_counts)
    dim = _check_unique_dim("unique_consecutive", input, dim)
    return _unique_slices(input, dim, None, return_inverse, return_counts)
