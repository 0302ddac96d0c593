# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Running sums, products and extremes, and what is made of neighbours: finite
differences, gradients of samples, integrals."""


from holdfast import _C
from holdfast._registry import both, function, inplace_of
from holdfast.return_types import named_result
from holdfast.shapes import _wrap

_ops = _C.ops
Tensor = _C.Tensor

_cummax_result = named_result("cummax", ["values", "indices"])
_cummin_result = named_result("cummin", ["values", "indices"])


@both(out=True)
def cummax(input, dim):
    """Running maximum along dim and the last index that has it: (values, indices)."""
    return _cummax_result(*_ops.cummax(input, dim))


@both(out=True)
def cummin(input, dim):
    """Running minimum along dim and the last index that has it: (values, indices)."""
    return _cummin_result(*_ops.cummin(input, dim))


def _cumsum_inplace(input, dim, *, dtype=None):
    return _ops.cumsum(input, dim, dtype=dtype)


def _cumprod_inplace(input, dim, *, dtype=None):
    return _ops.cumprod(input, dim, dtype=dtype)


inplace_of(_cumsum_inplace, "cumsum")
inplace_of(_cumprod_inplace, "cumprod")


def _part(input, dim, start, end=None):
    return _ops.slice(input, dim, start, end)


def _differences(input, dim):
    """input[i + 1] - input[i] along dim."""
    after, before = _part(input, dim, 1), _part(input, dim, 0, -1)
    if input.dtype is _C.bool:
        return _ops.ne(after, before)
    return after - before


@both(out=True)
def diff(input, n=1, dim=-1, prepend=None, append=None):
    """The n-th difference of neighbours along dim, with prepend and append joined
    on first. RuntimeError for a rank-0 input or n < 0."""
    if input.dim() == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = _wrap(dim, input.dim())
    for other in (prepend, append):
        if other is not None and other.dim() != input.dim():
            raise RuntimeError(
                "diff expects prepend or append to be the same dimension as input"
            )
    if n == 0:
        return _ops.clone(input)
    parts = [t for t in (prepend, input, append) if t is not None]
    if len(parts) > 1:
        input = _ops.cat(parts, dim)
    for _ in range(min(n, input.size(dim))):
        input = _differences(input, dim)
    return input


def _along(values, dim, rank):
    """A 1-D tensor that lies along dim of a tensor of rank `rank`."""
    shape = [1] * rank
    shape[dim] = -1
    return _ops.view(values, shape)


def _sample_gradient(input, dim, spacing, edge_order):
    n = input.size(dim)
    if isinstance(spacing, Tensor):
        # Second-order differences over uneven steps, as in NumPy.
        steps = _along(_differences(spacing, 0), dim, input.dim())
        rise = _differences(input, dim) / steps
        left, right = _part(steps, dim, 0, -1), _part(steps, dim, 1)
        share = right / (left + right)
        inner = _part(rise, dim, 0, -1) * share + _part(rise, dim, 1) * (1 - share)
    else:
        rise = _differences(input, dim) / spacing
        steps = None
        inner = (_part(input, dim, 2) - _part(input, dim, 0, -2)) / (2 * spacing)
    first, last = _part(rise, dim, 0, 1), _part(rise, dim, n - 2)
    if edge_order == 2:
        next_first = _part(rise, dim, 1, 2)
        next_last = _part(rise, dim, n - 3, n - 2)
        if steps is None:
            first = first * 1.5 - next_first * 0.5
            last = last * 1.5 - next_last * 0.5
        else:
            a, b = _part(steps, dim, 0, 1), _part(steps, dim, 1, 2)
            first = first + (first - next_first) * a / (a + b)
            a, b = _part(steps, dim, n - 2), _part(steps, dim, n - 3, n - 2)
            last = last + (last - next_last) * a / (a + b)
    return _ops.cat([first, inner, last], dim)


@function
def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """Derivative of samples along each of dim (all if None), as a tuple: second
    order inside, first or second at the edges. spacing: a number or a 1-D tensor
    of coordinates, or one per dimension."""
    rank = input.dim()
    if dim is None:
        dims = list(range(rank))
    else:
        dims = [_wrap(d, rank) for d in ((dim,) if isinstance(dim, int) else dim)]
    if edge_order not in (1, 2):
        raise RuntimeError(
            "torch.gradient only supports edge_order=1 and edge_order=2."
        )
    if len(set(dims)) != len(dims):
        raise RuntimeError("dim appears multiple times in the list of dims")
    spacing = 1 if spacing is None else spacing
    several = isinstance(spacing, (list, tuple))
    steps = list(spacing) if several else [spacing] * len(dims)
    if len(steps) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list "
            f"of length {len(dims)}, but got a list of length {len(steps)}"
        )
    for d, step in zip(dims, steps):
        if input.size(d) < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least "
                "edge_order+1"
            )
        if isinstance(step, Tensor) and tuple(step.shape) != (input.size(d),):
            raise RuntimeError(
                "torch.gradient expected the coordinates of dimension "
                f"{d} to have shape ({input.size(d)},), got {tuple(step.shape)}"
            )
    if not (input.is_floating_point() or input.dtype.is_complex):
        input = input.float()
    return tuple(_sample_gradient(input, d, s, edge_order) for d, s in zip(dims, steps))


def _panels(name, y, x, dx, dim):
    """Areas between neighbouring samples."""
    if x is not None and dx is not None:
        raise TypeError(f"{name}() takes x or dx, not both")
    dim = _wrap(dim, y.dim())
    if y.size(dim) == 0:
        return y, dim
    heights = _part(y, dim, 1) + _part(y, dim, 0, -1)
    if x is None:
        return heights * (0.5 * (1 if dx is None else dx)), dim
    if x.dim() == 1 and y.dim() > 1:
        if x.size(0) != y.size(dim):
            raise RuntimeError(
                f"{name}(): There must be one `x` value for each sample point"
            )
        x = _along(x, dim, y.dim())
    elif x.dim() < y.dim():
        x = _ops.view(x, (1,) * (y.dim() - x.dim()) + tuple(x.shape))
    return heights * _differences(x, dim) * 0.5, dim


@function(names=("trapz",))
def trapezoid(y, x=None, *, dx=None, dim=-1):
    """Integral of samples along dim by the trapezoidal rule; x: coordinates, dx:
    their distance."""
    panels, dim = _panels("trapezoid", y, x, dx, dim)
    return _ops.sum(panels, dim)


@function
def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """Running integral of samples along dim; one element shorter than y."""
    panels, dim = _panels("cumulative_trapezoid", y, x, dx, dim)
    return _ops.cumsum(panels, dim)
