# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Reductions that the op table's primitives compose to."""

import builtins
import math

from holdfast import _C
from holdfast._registry import accepts_out, both, function, method, overload
from holdfast.dtypes import get_default_dtype
from holdfast.return_types import named_result

_ops = _C.ops
Tensor = _C.Tensor

_max_result = named_result("max", ["values", "indices"])
_min_result = named_result("min", ["values", "indices"])
_aminmax_result = named_result("aminmax", ["min", "max"])


def _extreme(input, dim, keepdim, arg, result_type, node):
    # Only max and min know an order of bool.
    ordered = _ops.to(input, _C.uint8) if input.dtype is _C.bool else input
    indices = arg(ordered, dim, True)
    if input.dim() == 0:
        return result_type(_ops.clone(input), _ops.view(indices, ()))
    # gather keeps the gradient on the chosen element alone.
    values = _ops.gather(input, dim, indices)
    if not keepdim:
        values, indices = _ops.squeeze(values, dim), _ops.squeeze(indices, dim)
    _C.show_as(values, node, input)
    return result_type(values, indices)


@both(out=True)
def max(input, dim=None, keepdim=False, *, other=None, axis=None):
    """Largest element; with dim (values, indices); with a tensor maximum()."""
    dim = axis if dim is None else dim
    other = dim if isinstance(dim, Tensor) else other
    if other is not None:
        return _ops.maximum(input, other)
    if dim is None:
        return _C.show_as(_ops.amax(input), "MaxBackward1", input)
    return _extreme(input, dim, keepdim, _ops.argmax, _max_result, "MaxBackward0")


@both(out=True)
def min(input, dim=None, keepdim=False, *, other=None, axis=None):
    """Smallest element; with dim (values, indices); with a tensor minimum()."""
    dim = axis if dim is None else dim
    other = dim if isinstance(dim, Tensor) else other
    if other is not None:
        return _ops.minimum(input, other)
    if dim is None:
        return _C.show_as(_ops.amin(input), "MinBackward1", input)
    return _extreme(input, dim, keepdim, _ops.argmin, _min_result, "MinBackward0")


@both(out=True)
def aminmax(input, *, dim=None, keepdim=False):
    """Smallest and largest element."""
    return _aminmax_result(
        _ops.amin(input, dim, keepdim), _ops.amax(input, dim, keepdim)
    )


@overload("mean")
@accepts_out
def _mean(input, dim=None, keepdim=False, *, dtype=None, inplace_=False):
    if dtype is not None:
        input = _ops.to(input, dtype)
    return _ops.mean(input, dim, keepdim)


def _correction(unbiased, correction):
    if correction is not None:
        return correction
    return 1 if unbiased is None or unbiased else 0


def _shift(dim, unbiased):
    """PyTorch's form var(unbiased): a lone bool is no dimension."""
    if isinstance(dim, builtins.bool):
        return None, dim
    return dim, unbiased


@both(out=True)
def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None):
    """Variance over dim (all if None), with Bessel's correction by default."""
    dim, unbiased = _shift(axis if dim is None else dim, unbiased)
    result = _ops.var_mean(input, dim, _correction(unbiased, correction), keepdim)[0]
    return _C.show_as(result, "VarBackward0", input)


@both(out=True)
def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None):
    """Standard deviation: the root of var()."""
    variance = var(input, dim, unbiased, keepdim, correction=correction, axis=axis)
    return _C.show_as(_safe_root(variance), "StdBackward0", input)


@both
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """(var(), mean())."""
    dim, unbiased = _shift(dim, unbiased)
    return tuple(_ops.var_mean(input, dim, _correction(unbiased, correction), keepdim))


@both(out=True)
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """(std(), mean())."""
    variance, mean = var_mean(input, dim, unbiased, keepdim, correction=correction)
    return _safe_root(variance), mean


@both(out=True)
def logsumexp(input, dim, keepdim=False):
    """log(sum(exp(input))) over dim without overflow; -inf where dim is empty."""
    if input.dtype is _C.bool:
        input = _ops.to(input, get_default_dtype())
    if input.numel() == 0:
        return _ops.log(_ops.sum(_ops.exp(input), dim, keepdim))
    if not isinstance(dim, builtins.int) and not len(dim):
        dim = tuple(range(input.dim()))
    high = _ops.amax(input, dim, True)
    # An infinite maximum would give inf - inf.
    high = _ops.where(_ops.isfinite(high), high, 0.0).detach()
    total = _ops.log(_ops.sum(_ops.exp(input - high), dim, keepdim))
    result = total + (high if keepdim else _ops.squeeze(high, dim))
    return _C.show_as(result, "LogsumexpBackward0", input)


def _safe_root(total):
    """sqrt whose gradient at 0 is 0, PyTorch's choice for norms."""
    if not total.requires_grad:
        return _ops.sqrt(total)
    zero = _ops.eq(total, 0)
    return _ops.where(zero, 0.0, _ops.sqrt(_ops.where(zero, 1.0, total)))


@both
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """p-norm of the elements over dim (all if None); floating point only."""
    if out is not None:
        return _C.store_out(out, norm(input, p, dim, keepdim, dtype=dtype))
    if dtype is not None:
        input = _ops.to(input, dtype)
    if p in ("fro", None):
        p = 2.0
    if p == "nuc":
        from holdfast.linalg import matrix_norm

        dims = tuple(range(input.dim())) if dim is None else dim
        return matrix_norm(input, "nuc", dims, keepdim)
    if isinstance(p, str):
        raise NotImplementedError(f"holdfast has no torch.norm with p={p!r}.")
    if input.dtype.is_complex:
        input = _ops.abs(input)
    if p in (0, 1, 2, math.inf, -math.inf):
        result = _ops.vector_norm(input, builtins.float(p), dim, keepdim)
        return _C.show_as(result, "NormBackward1", input)
    size = _ops.abs(input)
    if input.requires_grad and p < 1:
        # A power of 0 has an infinite slope; PyTorch's norm has the gradient 0 there.
        none = _ops.eq(size, 0)
        power = _ops.where(none, 0.0, _ops.pow(_ops.where(none, 1.0, size), p))
    else:
        power = _ops.pow(size, p)
    total = _ops.sum(power, dim, keepdim)
    if not total.requires_grad:
        return _ops.pow(total, 1.0 / p)
    # As PyTorch has it, the gradient of a norm of 0 is 0.
    zero = _ops.eq(total, 0)
    root = _ops.pow(_ops.where(zero, 1.0, total), 1.0 / p)
    return _ops.where(zero, 0.0, root)


@function
def frobenius_norm(input, dim=None, keepdim=False, *, out=None):
    """The square root of the sum of squares over dim (all if None)."""
    return norm(input, "fro", dim, keepdim, out=out)


@both(out=True)
def dist(input, other, p=2):
    """p-norm of input - other."""
    return norm(input - other, p)


@both(out=True)
def nansum(input, dim=None, keepdim=False, *, dtype=None):
    """Sum with NaN as 0."""
    if not input.is_floating_point():
        return _ops.sum(input, dim, keepdim, dtype=dtype)
    if dtype is None or dtype == input.dtype:
        return _ops.nansum(input, dim, keepdim)
    return _ops.sum(
        _ops.where(_ops.isnan(input), 0.0, input), dim, keepdim, dtype=dtype
    )


@both(out=True)
def nanmean(input, dim=None, keepdim=False, *, dtype=None):
    """Mean of the elements that are not NaN."""
    if dtype is not None:
        input = _ops.to(input, dtype)
    if not input.is_floating_point():
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but "
            f"got {input.dtype}"
        )
    real = _ops.logical_not(_ops.isnan(input))
    count = _ops.sum(_ops.to(real, input.dtype), dim, keepdim)
    return nansum(input, dim, keepdim) / count


@overload("softmax")
@accepts_out
def _softmax(input, dim, dtype=None, *, _stacklevel=3, inplace_=False):
    return _ops.softmax(input, dim, dtype=dtype)


@overload("log_softmax")
@accepts_out
def _log_softmax(input, dim, dtype=None, *, _stacklevel=3, inplace_=False):
    return _ops.log_softmax(input, dim, dtype=dtype)


@method
def sum_to_size(self, *size):
    """The sum over dimensions that broadcasting `size` to this shape added.

    The reverse of expand(): a tensor of shape `size`, which must broadcast to
    this tensor's shape.
    """
    if len(size) == 1 and not isinstance(size[0], int):
        size = tuple(size[0])
    shape = tuple(self.shape)
    extra = len(shape) - len(size)
    if extra < 0 or builtins.any(s not in (1, n) for s, n in zip(size, shape[extra:])):
        raise RuntimeError(
            f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}."
        )
    dims = [*range(extra)]
    dims += [extra + i for i, s in enumerate(size) if s == 1 and shape[extra + i] != 1]
    if dims:
        self = _ops.sum(self, tuple(dims), keepdim=True)
    return _ops.view(self, size) if extra else self
