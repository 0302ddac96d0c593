# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Matrix and vector products by PyTorch's names."""

import math

from holdfast import _C
from holdfast._registry import accepts_out, both, function, inplace_of
from holdfast.shapes import reshape

_ops = _C.ops

# Elements from which kron() pays for longer rows, where a row of the second
# operand has fewer elements than this.
_LARGE_KRON = 1 << 14
_SHORT_ROW = 16


def _check_rank(name, *ranks):
    for i, (tensor, rank) in enumerate(ranks):
        if tensor.dim() != rank:
            raise RuntimeError(
                f"{name}: expected a {rank}-D tensor as argument {i}. "
                f"Got {tensor.dim()}-D of size {list(tensor.shape)}."
            )


@both(out=True)
def mm(input, mat2):
    """Product of two matrices."""
    _check_rank("mm", (input, 2), (mat2, 2))
    return _ops.matmul(input, mat2)


@both(out=True)
def bmm(input, mat2):
    """Products of two batches of matrices."""
    _check_rank("bmm", (input, 3), (mat2, 3))
    if input.size(0) != mat2.size(0):
        raise RuntimeError(
            "bmm: the batches must have one size. "
            f"Got {list(input.shape)} and {list(mat2.shape)}."
        )
    return _C.show_as(_ops.matmul(input, mat2), "BmmBackward0", input, mat2)


@both(out=True)
def mv(input, vec):
    """Product of a matrix and a vector."""
    _check_rank("mv", (input, 2), (vec, 1))
    return _ops.matmul(input, vec)


@both(out=True)
def dot(input, tensor):
    """Sum of the products of two vectors."""
    _check_rank("dot", (input, 1), (tensor, 1))
    return _ops.matmul(input, tensor)


def _conjugate(x):
    return _ops.conj(x) if x.is_complex() else x


@both(names=("ger",), out=True)
def outer(input, vec2):
    """Matrix of the products of two vectors' elements."""
    _check_rank("outer", (input, 1), (vec2, 1))
    return _ops.unsqueeze(input, 1) * vec2


def _scaled(tensor, factor):
    return tensor if factor == 1 else tensor * factor


def _add_product(input, product, beta, alpha):
    product = _scaled(product, alpha)
    if input.dtype is not product.dtype and _C.autocast_is_on(input.is_cuda):
        input = input.to(product.dtype)
    # beta=0 ignores input, NaN included.
    if beta != 0:
        return _scaled(input, beta) + product
    return product


@both(out=True)
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta * input + alpha * (mat1 @ mat2)."""
    result = _add_product(input, mm(mat1, mat2), beta, alpha)
    return _C.show_as(result, "AddmmBackward0", input, mat1, mat2)


@both(out=True)
def addmv(input, mat, vec, *, beta=1, alpha=1):
    """beta * input + alpha * (mat @ vec)."""
    return _add_product(input, mv(mat, vec), beta, alpha)


@both(out=True)
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """beta * input + alpha * (batch1 @ batch2)."""
    result = _add_product(input, bmm(batch1, batch2), beta, alpha)
    return _C.show_as(result, "BaddbmmBackward0", input, batch1, batch2)


@both(out=True)
def addr(input, vec1, vec2, *, beta=1, alpha=1):
    """beta * input + alpha * outer(vec1, vec2)."""
    return _add_product(input, outer(vec1, vec2), beta, alpha)


@both(out=True)
def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """beta * input + alpha * (the sum of batch1 @ batch2 over the batch)."""
    _check_rank("addbmm", (batch1, 3), (batch2, 3))
    if batch1.size(0) != batch2.size(0):
        raise RuntimeError(
            "batch1 and batch2 must have same number of batches, got "
            f"{batch1.size(0)} and {batch2.size(0)}"
        )
    # One product of [n, b k] and [b k, m].
    wide = _ops.permute(batch1, (1, 0, 2)).flatten(1)
    return _add_product(input, _ops.matmul(wide, batch2.flatten(0, 1)), beta, alpha)


for _f in (addmm, addmv, addbmm, baddbmm, addr):
    inplace_of(_f)


@both(out=True)
def vdot(input, other):
    """Sum of the products of two vectors, the first one conjugated."""
    return dot(_conjugate(input), other)


@both(out=True)
def inner(input, other):
    """Sums of products over the last dimensions; plain products with a scalar."""
    if input.dim() == 0 or other.dim() == 0:
        return input * other
    if input.size(-1) != other.size(-1):
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got "
            f"shapes {list(input.shape)} and {list(other.shape)}"
        )
    return _pair_product(input, other)


def _pair_product(input, other):
    """Last dimension against last dimension, the others side by side."""
    shape = tuple(input.shape[:-1]) + tuple(other.shape[:-1])
    k = input.size(-1)
    left, right = (x.reshape(math.prod(x.shape[:-1]), k) for x in (input, other))
    return _ops.view(_ops.matmul(left, right.t()), shape)


@accepts_out
def vecdot(x, y, *, dim=-1):
    """Sum of the products over dim, x conjugated; the other dimensions broadcast."""
    return _ops.sum(_conjugate(x) * y, dim)


@function(out=True)
def tensordot(a, b, dims=2):
    """Sums of products over the last dims of a and the first of b, or over the
    pairs dims[0] of a and dims[1] of b. One of a pair may have size 1: it broadcasts.
    """
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(
                "tensordot expects dims < ndim_a or ndim_b, but got dims="
                f"{dims} for {a.dim()}-D and {b.dim()}-D tensors"
            )
        dims = range(a.dim() - dims, a.dim()), range(dims)
    of_a, of_b = ([d % x.dim() for d in ds] for ds, x in zip(dims, (a, b)))
    if len(of_a) != len(of_b):
        raise RuntimeError(
            "both dimension lists should have same length, got "
            f"{list(of_a)} and {list(of_b)}"
        )
    for i, j in zip(of_a, of_b):
        if a.size(i) == 1:
            b = _ops.sum(b, (j,), True) if b.size(j) != 1 else b
        elif b.size(j) == 1:
            a = _ops.sum(a, (i,), True)
        elif a.size(i) != b.size(j):
            raise RuntimeError(
                "contracted dimensions need to match, but first has size "
                f"{a.size(i)} in dim {i} and second has size {b.size(j)} in dim {j}"
            )
    k = math.prod(a.size(i) for i in of_a)
    matrices, shape = [], ()
    for x, summed in ((a, of_a), (b, of_b)):
        free = [d for d in range(x.dim()) if d not in summed]
        rows = tuple(x.size(d) for d in free)
        x = _ops.permute(x, tuple(free) + tuple(summed))
        matrices.append(x.reshape(math.prod(rows), k))
        shape += rows
    return _ops.view(_ops.matmul(matrices[0], matrices[1].t()), shape)


@both(out=True)
def kron(input, other):
    """Kronecker product; the one of lower rank gets leading dimensions."""
    left, right = tuple(input.shape), tuple(other.shape)
    rank = len(left)
    if rank != len(right):
        rank = max(rank, len(right))
        left = (1,) * (rank - len(left)) + left
        right = (1,) * (rank - len(right)) + right
    if rank == 2:
        rows, columns = left[0] * right[0], left[1] * right[1]
        if right[1] >= _SHORT_ROW or rows * columns < _LARGE_KRON:
            # As the last case, in a third less time where elements are few.
            a = reshape(input, (left[0], 1, left[1], 1))
            b = reshape(other, (1, right[0], 1, right[1]))
            return reshape(_ops.mul(a, b), (rows, columns))
    shape = [a * b for a, b in zip(left, right)]
    if rank > 1 and right[-1] < _SHORT_ROW and math.prod(shape) >= _LARGE_KRON:
        # The last dimension written out in both: then a row of the result is
        # one of each, and the rows are long.
        row = (left[-1], right[-1])
        a = input.reshape([n for size in left[:-1] for n in (size, 1)] + [row[0], 1])
        b = other.reshape([n for size in right[:-1] for n in (1, size)] + [1, row[1]])
        a = _ops.expand(a, tuple(a.shape[:-2]) + row)
        b = _ops.expand(b, tuple(b.shape[:-2]) + row)
        a = a.reshape(tuple(a.shape[:-2]) + (shape[-1],))
        b = b.reshape(tuple(b.shape[:-2]) + (shape[-1],))
    else:
        a = reshape(input, [n for size in left for n in (size, 1)])
        b = reshape(other, [n for size in right for n in (1, size)])
    return reshape(_ops.mul(a, b), shape)


@both(names=("cross",), out=True)
def _torch_cross(input, other, dim=None):
    """Cross product along dim, by default the first of size 3."""
    if dim is None:
        sizes = [n for n in input.shape]
        if 3 not in sizes:
            raise RuntimeError("no dimension of size 3 in input")
        dim = sizes.index(3)
    return _ops.linalg_cross(input, other, dim)


@accepts_out
def cross(input, other, *, dim=-1):
    """Cross product of vectors along dim."""
    return _ops.linalg_cross(input, other, dim)


@both
def trace(input):
    """Sum of a matrix's diagonal."""
    if input.dim() != 2:
        raise RuntimeError(
            f"trace: expected a matrix, but got tensor with dim {input.dim()}"
        )
    m, n = input.shape
    end = max(min(m, n) * (n + 1) - n, 0)
    result = _ops.sum(_ops.slice(input.reshape(-1), 0, 0, end, n + 1))
    return _C.show_as(result, "TraceBackward0", input)


def _best_order(sizes):
    """Where to split each chain i..j of matrices so that the fewest
    multiplications are done; matrix i is sizes[i] by sizes[i + 1]."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (
                    cost[i, k]
                    + cost[k + 1, j]
                    + sizes[i] * sizes[k + 1] * sizes[j + 1],
                    k,
                )
                for k in range(i, j)
            )
    return split


@accepts_out
def multi_dot(tensors):
    """Product of matrices in the cheapest order; the ends may be vectors."""
    if len(tensors) < 2:
        raise RuntimeError(
            f"multi_dot(): expected at least 2 tensors but got {len(tensors)}"
        )
    matrices = list(tensors)
    row, column = matrices[0].dim() == 1, matrices[-1].dim() == 1
    if row:
        matrices[0] = _ops.unsqueeze(matrices[0], 0)
    if column:
        matrices[-1] = _ops.unsqueeze(matrices[-1], -1)
    for i, x in enumerate(matrices):
        if x.dim() != 2:
            raise RuntimeError(
                f"multi_dot(): tensor {i} must be 2D but got {tensors[i].dim()}D"
            )
    split = _best_order([x.size(0) for x in matrices] + [matrices[-1].size(1)])

    def product(i, j):
        if i == j:
            return matrices[i]
        k = split[i, j]
        return mm(product(i, k), product(k + 1, j))

    result = product(0, len(matrices) - 1)
    result = _ops.squeeze(result, 0) if row else result
    return _ops.squeeze(result, -1) if column else result


@function(out=True)
def chain_matmul(*matrices):
    """Product of several matrices: linalg.multi_dot()."""
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices)
