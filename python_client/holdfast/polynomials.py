# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.special's orthogonal polynomials of degree n: input and n broadcast, n is cut
to a whole number, and below 0 the value is 0. None has gradients, as in PyTorch.

The recurrence runs to the largest degree, so a tensor of degrees is waited for.
"""

import math

from holdfast import _C
from holdfast._registry import accepts_out
from holdfast.dtypes import result_type
from holdfast.shapes import broadcast_tensors

_ops = _C.ops
Tensor = _C.Tensor

# No recurrence is longer; NaN beyond.
_MOST = 100_000

# What starts and what continues each family: p0, p1 as (factor of x, constant), and
# (a, b, c) of degree k in p_k = (a x + b) p_(k-1) - c p_(k-2).
_FAMILIES = {
    "chebyshev_polynomial_t": ((1, 0), lambda k: (2, 0, 1)),
    "chebyshev_polynomial_u": ((2, 0), lambda k: (2, 0, 1)),
    "chebyshev_polynomial_v": ((2, -1), lambda k: (2, 0, 1)),
    "chebyshev_polynomial_w": ((2, 1), lambda k: (2, 0, 1)),
    "hermite_polynomial_h": ((2, 0), lambda k: (2, 0, 2 * (k - 1))),
    "hermite_polynomial_he": ((1, 0), lambda k: (1, 0, k - 1)),
    "laguerre_polynomial_l": (
        (-1, 1),
        lambda k: (-1 / k, (2 * k - 1) / k, (k - 1) / k),
    ),
    "legendre_polynomial_p": ((1, 0), lambda k: ((2 * k - 1) / k, 0, (k - 1) / k)),
    "shifted_chebyshev_polynomial_t": ((2, -1), lambda k: (4, -2, 1)),
    "shifted_chebyshev_polynomial_u": ((4, -2), lambda k: (4, -2, 1)),
    "shifted_chebyshev_polynomial_v": ((4, -3), lambda k: (4, -2, 1)),
    "shifted_chebyshev_polynomial_w": ((4, -1), lambda k: (4, -2, 1)),
}


def _operands(input, n):
    """(x, degrees, the largest degree), of one shape and a floating type."""
    if not isinstance(input, Tensor) and not isinstance(n, Tensor):
        raise TypeError("expected a tensor among input and n")
    dtype = result_type(input, n)
    if not dtype.is_floating_point:
        dtype = _C.float32
    device = (input if isinstance(input, Tensor) else n).device
    x, degrees = (
        _ops.to(t.detach(), dtype)
        if isinstance(t, Tensor)
        else _ops.full((), t, dtype=dtype, device=device)
        for t in (input, n)
    )
    x, degrees = broadcast_tensors(x, _ops.trunc(degrees))
    if not isinstance(n, Tensor):
        largest = n
    else:
        # NaN is no degree.
        whole = _ops.where(_ops.eq(degrees, degrees), degrees, -1.0)
        largest = _ops.amax(whole).item() if n.numel() else -1
    return x, degrees, int(min(largest, _MOST))


def _family(name, start, step):
    def function(input, n):
        x, degrees, largest = _operands(input, n)
        result = _ops.to(_ops.ge(degrees, 0), x.dtype)
        before, now = (
            _ops.full((), 1.0, dtype=x.dtype, device=x.device),
            x * start[0] + start[1],
        )
        for k in range(1, largest + 1):
            if k > 1:
                a, b, c = step(k)
                before, now = now, (x * a + b) * now - before * c
            result = _ops.where(_ops.eq(degrees, k), now, result)
        return _ops.where(_ops.gt(degrees, float(_MOST)), math.nan, result)

    function.__name__ = function.__qualname__ = name
    words = name.replace("_polynomial_", " polynomial ").replace("_", " ")
    function.__doc__ = f"The {words.capitalize()} of degree n at input."
    return accepts_out(function)


NAMED = {name: _family(name, *rows) for name, rows in _FAMILIES.items()}
# Pickle finds a function by its name in its module.
globals().update(NAMED)
