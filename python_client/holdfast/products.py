# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Matrix and vector products by PyTorch's names."""

from holdfast import _C
from holdfast._registry import both, function, inplace_of

_ops = _C.ops


def _check_rank(name, *ranks):
    for i, (tensor, rank) in enumerate(ranks):
        if tensor.dim() != rank:
            raise RuntimeError(
                f"{name}: expected a {rank}-D tensor as argument {i}. "
                f"Got {tensor.dim()}-D of size {list(tensor.shape)}."
            )


@both
def mm(input, mat2):
    """Product of two matrices."""
    _check_rank("mm", (input, 2), (mat2, 2))
    return _ops.matmul(input, mat2)


@both
def bmm(input, mat2):
    """Products of two batches of matrices."""
    _check_rank("bmm", (input, 3), (mat2, 3))
    if input.size(0) != mat2.size(0):
        raise RuntimeError(
            "bmm: the batches must have one size. "
            f"Got {list(input.shape)} and {list(mat2.shape)}."
        )
    return _ops.matmul(input, mat2)


@both
def mv(input, vec):
    """Product of a matrix and a vector."""
    _check_rank("mv", (input, 2), (vec, 1))
    return _ops.matmul(input, vec)


@both
def dot(input, tensor):
    """Sum of the products of two vectors."""
    _check_rank("dot", (input, 1), (tensor, 1))
    return _ops.matmul(input, tensor)


@both(names=("ger",))
def outer(input, vec2):
    """Matrix of the products of two vectors' elements."""
    _check_rank("outer", (input, 1), (vec2, 1))
    return _ops.unsqueeze(input, 1) * vec2


def _scaled(tensor, factor):
    return tensor if factor == 1 else tensor * factor


def _add_product(input, product, beta, alpha):
    product = _scaled(product, alpha)
    # beta=0 ignores input, NaN included.
    if beta != 0:
        return _scaled(input, beta) + product
    return product


@both
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta * input + alpha * (mat1 @ mat2)."""
    return _add_product(input, mm(mat1, mat2), beta, alpha)


@both
def addmv(input, mat, vec, *, beta=1, alpha=1):
    """beta * input + alpha * (mat @ vec)."""
    return _add_product(input, mv(mat, vec), beta, alpha)


@both
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """beta * input + alpha * (batch1 @ batch2)."""
    return _add_product(input, bmm(batch1, batch2), beta, alpha)


@both
def addr(input, vec1, vec2, *, beta=1, alpha=1):
    """beta * input + alpha * outer(vec1, vec2)."""
    return _add_product(input, outer(vec1, vec2), beta, alpha)


for _f in (addmm, addmv, baddbmm, addr):
    inplace_of(_f)


@function
def chain_matmul(*matrices):
    """Product of several matrices, left to right."""
    product = matrices[0]
    for matrix in matrices[1:]:
        product = mm(product, matrix)
    return product
