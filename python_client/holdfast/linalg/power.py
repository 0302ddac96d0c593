# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Powers: of matrices, and of numbers as a Vandermonde matrix."""

from holdfast import _C
from holdfast._registry import accepts_out, both, function
from holdfast.constants import in_graph_of

from .factor import identity_like
from .solve import inv

_ops = _C.ops


@both
def matrix_exp(A):
    """Matrix exponential of square matrices."""
    return _ops.linalg_matrix_exp(A)


@accepts_out
def matrix_power(A, n):
    """A multiplied n times with itself; its inverse's powers for n < 0."""
    if A.dim() < 2 or A.size(-1) != A.size(-2):
        raise RuntimeError(
            "linalg.matrix_power: A must be batches of square matrices, but they "
            f"are of shape {list(A.shape)}"
        )
    if n == 0:
        result = _ops.expand(identity_like(A, A.size(-1)), tuple(A.shape))
        return in_graph_of(_ops.clone(result), A)
    square = inv(A) if n < 0 else A
    n, result = abs(n), None
    while True:
        if n % 2:
            result = square if result is None else result @ square
        n //= 2
        if n == 0:
            return result
        square = square @ square


@both(names=("matrix_power",), out=True)
def _matrix_power(input, n):
    """linalg.matrix_power(); here PyTorch names the argument otherwise."""
    return matrix_power(input, n)


def vander(x, *, N=None):
    """Powers 0 .. N-1 of x (its size if None) in a new last dimension."""
    x = x if x.dim() else _ops.view(x, (1,))
    n = x.size(-1) if N is None else N
    if N is not None and N <= 1:
        raise RuntimeError(f"linalg.vander: N must be greater than 1. Got {N}")
    return _ops.pow(_ops.unsqueeze(x, -1), _ops.arange(0, n))


@function(names=("vander",))
def _vander(x, N=None, increasing=False):
    """Powers N-1 .. 0 (0 .. N-1 if increasing) of the vector x, as columns."""
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.size(0) if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    powers = _ops.pow(_ops.unsqueeze(x, -1), _ops.arange(0, n))
    return powers if increasing else _ops.flip(powers, (1,))
