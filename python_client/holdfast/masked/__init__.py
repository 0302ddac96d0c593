# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.masked: reductions and normalisations of the elements where a mask is True.

mask broadcasts to the input; None is all. An element that is masked out counts as
the reduction's identity: 0 in a sum, -inf in a maximum.
"""

import builtins
import math

import holdfast as _hf
from holdfast import _C
from holdfast.missing import module_getattr

_ops = _C.ops

__all__ = """
    amax amin argmax argmin cumprod cumsum log_softmax logaddexp logsumexp mean median
    norm normalize prod softmax softmin std sum var
""".split()


def _lowest(input):
    if input.is_floating_point():
        return -math.inf
    return _hf.iinfo(input.dtype).min


def _highest(input):
    return math.inf if input.is_floating_point() else _hf.iinfo(input.dtype).max


def _filled(input, mask, identity):
    if mask is None:
        return input
    if mask.dim() > input.dim():
        raise IndexError(
            "expected mask dimensionality to be equal to or less than input's. Got "
            f"mask {list(mask.shape)} and input {list(input.shape)}."
        )
    mask = _ops.expand(_ops.to(mask, _C.bool), tuple(input.shape))
    return _ops.where(mask, input, identity)


def _dims(dim, rank):
    """dim as a tuple: all if None or empty."""
    if dim is None or dim == ():
        return tuple(range(rank))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    wrapped = tuple(d % builtins.max(rank, 1) for d in dims)
    for d in dims:
        if not -builtins.max(rank, 1) <= d < builtins.max(rank, 1):
            raise IndexError(f"Dimension out of range: {d} of a tensor of rank {rank}")
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"dim appears multiple times in the list of dims: {dims}")
    return wrapped if rank else ()


def _wide(input, dtype):
    """The type of a sum: int64 of integers."""
    if dtype is not None or input.is_floating_point() or input.is_complex():
        return input.dtype if dtype is None else dtype
    return _C.int64


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Sum over dim."""
    input = _ops.to(input, _wide(input, dtype))
    return _reduced(_hf.sum, _filled(input, mask, 0), dim, keepdim)


def _reduced(function, input, dim, keepdim):
    dims = _dims(dim, input.dim())
    return function(input, dims, keepdim) if dims else input.clone()


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Product over dim."""
    result = _filled(_ops.to(input, _wide(input, dtype)), mask, 1)
    for d in sorted(_dims(dim, input.dim()), reverse=True):
        result = _hf.prod(result, d, keepdim)
    return result


def cumsum(input, dim, *, dtype=None, mask=None):
    """Sums of the elements up to each one along dim."""
    return _hf.cumsum(_filled(_ops.to(input, _wide(input, dtype)), mask, 0), dim)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Products of the elements up to each one along dim."""
    return _hf.cumprod(_filled(_ops.to(input, _wide(input, dtype)), mask, 1), dim)


def _typed(input, dtype):
    return input if dtype is None else _ops.to(input, dtype)


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Largest element over dim."""
    filled = _filled(input, mask, _lowest(input))
    return _typed(_reduced(_hf.amax, filled, dim, keepdim), dtype)


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Smallest element over dim."""
    filled = _filled(input, mask, _highest(input))
    return _typed(_reduced(_hf.amin, filled, dim, keepdim), dtype)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Index of the largest element along dim, of all elements if None; in the input's
    type, as PyTorch has it."""
    filled = _filled(input, mask, _lowest(input))
    return _ops.to(_hf.argmax(filled, dim, keepdim), dtype or input.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Index of the smallest element along dim, of all elements if None; in the
    input's type, as PyTorch has it."""
    filled = _filled(input, mask, _highest(input))
    return _ops.to(_hf.argmin(filled, dim, keepdim), dtype or input.dtype)


def _count(input, dim, keepdim, mask):
    ones = _ops.full(tuple(input.shape), 1, dtype=_C.int64)
    return sum(ones, dim, keepdim=keepdim, mask=mask)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Mean over dim; NaN where the mask leaves nothing."""
    total = sum(input, dim, keepdim=keepdim, dtype=dtype or input.dtype, mask=mask)
    return total / _count(input, dim, keepdim, mask)


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The lower median along dim; NaN where the mask leaves nothing."""
    input = _typed(input, dtype)
    if not input.is_floating_point():
        input = _ops.to(input, _C.float32)
    if input.isnan().any():
        raise ValueError("masked.median expects no NaN in its input")
    return _hf.nanmedian(_filled(input, mask, math.nan), dim, keepdim).values


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """log of the sum of exp over dim, without overflow."""
    filled = _filled(input, mask, _lowest(input))
    dims = _dims(dim, input.dim())
    # Of a number: itself, in the graph.
    result = _hf.logsumexp(filled, dims, keepdim) if dims else filled.clone()
    return _typed(result, dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)), each where its mask is True."""
    left = _filled(input, input_mask, _lowest(input))
    return _typed(
        _hf.logaddexp(left, _filled(other, other_mask, _lowest(other))), dtype
    )


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Vector norm of order `ord` over dim."""
    ord = 2.0 if ord is None else ord
    filled = _filled(input, mask, math.inf if ord == -math.inf else 0)
    dims = _dims(dim, input.dim())
    return _hf.linalg.vector_norm(filled, ord, dims or None, keepdim, dtype=dtype)


def var(
    input,
    dim=None,
    unbiased=None,
    *,
    correction=None,
    keepdim=False,
    dtype=None,
    mask=None,
):
    """Variance over dim: over the count less `correction` (1 unless given). unbiased,
    the older word: a correction of 1 if True, 0 if False."""
    correction = _correction(unbiased, correction)
    if dtype is None:
        real = input.is_floating_point() or input.is_complex()
        dtype = input.dtype if real else _C.float32
    count = _count(input, dim, True, mask)
    centre = sum(input, dim, keepdim=True, dtype=dtype, mask=mask) / count
    x = input - centre
    total = sum(x * _hf.conj(x), dim, keepdim=keepdim, dtype=dtype, mask=mask)
    count = count.reshape(tuple(total.shape))
    if correction:
        count = _hf.clamp(count - correction, min=0)
    return _ops.to(total / count, dtype)


def _correction(unbiased, correction):
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given.")
    if unbiased is not None:
        return int(unbiased)
    return 1 if correction is None else correction


def std(
    input,
    dim=None,
    unbiased=None,
    *,
    correction=None,
    keepdim=False,
    dtype=None,
    mask=None,
):
    """Square root of var()."""
    how = {"correction": correction, "keepdim": keepdim, "dtype": dtype, "mask": mask}
    return _hf.sqrt(var(input, dim, unbiased, **how))


def softmax(input, dim, *, dtype=None, mask=None):
    """exp of the elements over their sum along dim."""
    input = _typed(input, dtype)
    return _hf.nn.functional.softmax(_filled(input, mask, -math.inf), dim)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """log(softmax())."""
    input = _typed(input, dtype)
    return _hf.nn.functional.log_softmax(_filled(input, mask, -math.inf), dim)


def softmin(input, dim, *, dtype=None, mask=None):
    """softmax() of the negated elements."""
    input = _typed(input, dtype)
    return _hf.nn.functional.softmin(_filled(input, mask, math.inf), dim)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """input over the larger of its norm along dim and eps."""
    input = _typed(input, dtype)
    size = norm(input, ord, dim, keepdim=True, mask=mask)
    return _filled(input, mask, 0) / _hf.maximum(
        size, _ops.full((), eps, dtype=size.dtype)
    )


__getattr__ = module_getattr("torch.masked")
