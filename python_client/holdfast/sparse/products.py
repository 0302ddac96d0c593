# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Arithmetic of sparse tensors: products with matrices, sums, factors."""

import math

import holdfast
from holdfast import _C
from holdfast._registry import OVERLOADS, overload
from holdfast.errors import UnsupportedError
from holdfast.sparse.coo_tensor import SparseTensor, sparse_method


Tensor = _C.Tensor


def _check_matrices(name, a, b):
    if a.dim() != 2 or b.dim() != 2:
        raise RuntimeError(
            f"{name}: two matrices are expected. Got {a.dim()}-D of size "
            f"{list(a.shape)} and {b.dim()}-D of size {list(b.shape)}."
        )
    if a.size(1) != b.size(0):
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.size(0)}x{a.size(1)} and "
            f"{b.size(0)}x{b.size(1)})"
        )
    for matrix in (a, b):
        if isinstance(matrix, SparseTensor) and matrix.dense_dim():
            raise UnsupportedError(
                f"holdfast has no {name} of sparse tensors whose values are blocks."
            )


def mm(mat1, mat2, reduce=None):
    """Product of two matrices, one of them sparse at least. Of two sparse ones the
    result is sparse, else dense. Gradients reach dense operands and values."""
    if reduce is not None:
        raise UnsupportedError("holdfast has no argument 'reduce' of torch.sparse.mm.")
    _check_matrices("mm", mat1, mat2)
    if not isinstance(mat1, SparseTensor):
        if not isinstance(mat2, SparseTensor):
            return holdfast.matmul(mat1, mat2)
        return mm(transpose(mat2, 0, 1), mat1.t()).t()
    if isinstance(mat2, SparseTensor):
        return _sparse_product(mat1, mat2)
    rows, columns = mat1._index.unbind(0)
    picked = holdfast.index_select(mat2, 0, columns)
    terms = holdfast.unsqueeze(mat1._value, 1) * picked
    zeros = holdfast.full((mat1.size(0), mat2.size(1)), 0, dtype=terms.dtype)
    return holdfast.index_add(zeros, 0, rows, terms)


def _sparse_product(a, b):
    """Every element of a meets those of b in the row that its column names."""
    b = b.coalesce()
    rows, columns = a._index.unbind(0)
    b_rows, b_columns = b._index.unbind(0)
    counts = holdfast.bincount(b_rows, minlength=b.size(0))
    first = holdfast.cumsum(counts, 0) - counts
    met = holdfast.index_select(counts, 0, columns)
    left = holdfast.arange(0, a._nnz(), 1).repeat_interleave(met)
    start = holdfast.cumsum(met, 0) - met
    inside = holdfast.arange(0, left.size(0), 1) - holdfast.index_select(start, 0, left)
    right = inside + holdfast.index_select(
        holdfast.index_select(first, 0, columns), 0, left
    )
    values = holdfast.index_select(a._value, 0, left) * holdfast.index_select(
        b._value, 0, right
    )
    indices = holdfast.stack(
        [
            holdfast.index_select(rows, 0, left),
            holdfast.index_select(b_columns, 0, right),
        ]
    )
    return SparseTensor(indices, values, (a.size(0), b.size(1))).coalesce()


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta * input + alpha * (mat1 @ mat2), mat1 sparse."""
    product = mm(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else input * beta + product


@sparse_method(names=("matmul", "__matmul__"))
def matmul(self, other):
    """Product with a matrix or a vector."""
    if other.dim() == 1:
        return holdfast.squeeze(matmul(self, holdfast.unsqueeze(other, 1)), 1)
    if self.dim() == 1:
        return holdfast.squeeze(mm(holdfast.unsqueeze(self, 0), other), 0)
    return mm(self, other)


@sparse_method(names=("__rmatmul__",))
def _rmatmul(self, other):
    return matmul(other, self)


sparse_method(mm)
sparse_method(mm, names=("smm", "spmm"))
sparse_method(matmul, names=("mv",))


@sparse_method
def transpose(self, dim0, dim1):
    """Two dimensions exchanged."""
    rank = self.sparse_dim()
    dim0, dim1 = dim0 % self.dim(), dim1 % self.dim()
    if max(dim0, dim1) >= rank:
        raise UnsupportedError("holdfast transposes sparse dimensions only.")
    order = list(range(rank))
    order[dim0], order[dim1] = dim1, dim0
    size = [self._size[d] for d in order] + list(self._size[rank:])
    index = holdfast.index_select(self._index, 0, _C.tensor(order))
    return SparseTensor(index, self._value, size)


@sparse_method
def t(self):
    """The transpose of a matrix."""
    return transpose(self, 0, 1) if self.dim() > 1 else self


for _name in ("T", "mT"):
    sparse_method(property(t), names=(_name,))


def _is_number(value):
    return not isinstance(value, Tensor) or (
        not isinstance(value, SparseTensor) and value.dim() == 0
    )


def _check_same(name, a, b):
    if tuple(a.shape) != tuple(b.shape):
        raise RuntimeError(
            f"{name}: sizes of sparse operands must be equal. Got {list(a.shape)} and "
            f"{list(b.shape)}."
        )


@sparse_method(names=("add", "__add__", "__radd__"))
def add(self, other, *, alpha=1):
    """Sum with a sparse tensor (sparse), or with a dense one (dense)."""
    if _is_number(other):
        raise UnsupportedError(
            "adding a number to a sparse tensor would make it dense; use to_dense()."
        )
    _check_same("add", self, other)
    other = other if alpha == 1 else other * alpha
    if not isinstance(self, SparseTensor):
        return self + other.to_dense()
    if not isinstance(other, SparseTensor):
        return self.to_dense() + other
    indices = holdfast.cat([self._index, other._index], 1)
    values = holdfast.cat([self._value, other._value], 0)
    return SparseTensor(indices, values, self._size)


@sparse_method(names=("neg", "__neg__"))
def neg(self):
    """-self."""
    return self._with(-self._value)


@sparse_method(names=("sub", "__sub__"))
def sub(self, other, *, alpha=1):
    """Difference to a sparse or dense tensor."""
    return add(self, other, alpha=-alpha)


@sparse_method(names=("__rsub__",))
def _rsub(self, other):
    return add(other, self, alpha=-1)


@sparse_method(names=("mul", "multiply", "__mul__", "__rmul__"))
def mul(self, other):
    """Product, element by element, with a number or a tensor of the same size; sparse,
    with this tensor's indices."""
    if not isinstance(self, SparseTensor):
        self, other = other, self
    if _is_number(other):
        return self._with(self._value * other)
    _check_same("mul", self, other)
    if isinstance(other, SparseTensor):
        other, self = other.to_dense(), self.coalesce()
    rows = math.prod(self._size[: self.sparse_dim()])
    dense = other.reshape(rows, *self._value.shape[1:])
    picked = holdfast.index_select(dense, 0, self._flat())
    return self._with(self._value * picked)


@sparse_method(names=("div", "divide", "true_divide", "__truediv__"))
def div(self, other):
    """Quotient by a number."""
    if not _is_number(other):
        raise RuntimeError(
            "Sparse division requires a scalar or zero-dim dense tensor divisor. "
            f"Got {type(other).__name__} of size {list(other.shape)}."
        )
    return self._with(self._value / other)


def _of_values(name):
    def function(self):
        own = self.coalesce()
        return own._with(getattr(own._value, name)())

    function.__name__ = name
    function.__doc__ = f"{name}() of the values; zeros stay zeros."
    sparse_method(function)


for _name in """
    abs asin asinh atan atanh ceil deg2rad erf expm1 floor log1p rad2deg relu round sgn
    sign sin sinh sqrt square tan tanh trunc
""".split():
    _of_values(_name)


@sparse_method(names=("pow", "__pow__"))
def pow(self, exponent):
    """Powers of the values."""
    if not _is_number(exponent) or exponent == 0:
        raise UnsupportedError("sparse tensors have powers by numbers other than 0.")
    own = self.coalesce()
    return own._with(own._value**exponent)


@sparse_method
def unsqueeze(self, dim):
    """A dimension of size 1, among the sparse ones."""
    rank = self.sparse_dim()
    dim %= self.dim() + 1
    if dim > rank:
        raise UnsupportedError("holdfast unsqueezes sparse dimensions only.")
    zero = holdfast.full((1, self._nnz()), 0, dtype=_C.int64)
    index = holdfast.cat([self._index[:dim], zero, self._index[dim:]], 0)
    size = list(self._size)
    size.insert(dim, 1)
    return SparseTensor(index, self._value, size, self._coalesced)


@sparse_method
def index_select(self, dim, index):
    """The given rows along dim."""
    from holdfast.sparse.reductions import selection

    if dim % self.dim() == 0:
        return mm(selection(index, self.size(0), self.dtype), self)
    return transpose(index_select(transpose(self, 0, dim), 0, index), 0, dim)


@sparse_method(names=("__getitem__", "select"))
def _getitem(self, key, *rest):
    if rest:  # select(dim, index)
        dim, key = key % self.dim(), rest[0]
        self = transpose(self, 0, dim) if dim else self
    if not isinstance(key, int) or isinstance(key, bool):
        raise UnsupportedError("sparse tensors are indexed by one int only.")
    if not -self._size[0] <= key < self._size[0]:
        raise IndexError(
            f"index {key} is out of bounds for dimension 0 with size {self._size[0]}"
        )
    kept = holdfast.nonzero(holdfast.eq(self._index[0], key % self._size[0])).view(-1)
    values = holdfast.index_select(self._value, 0, kept)
    if self.sparse_dim() == 1:
        return holdfast.sum(values, 0)
    index = holdfast.index_select(self._index[1:], 1, kept)
    return SparseTensor(index, values, self._size[1:], self._coalesced)


def _take_sparse(name, function):
    """The table's op `name` calls `function` where an operand is sparse."""
    dense = OVERLOADS.get(name)

    def call(*args, out=None, inplace_=False, **kwargs):
        if any(isinstance(a, SparseTensor) for a in args):
            if out is not None or inplace_:
                raise UnsupportedError(f"sparse tensors are not written into ({name}).")
            return function(*args, **kwargs)
        if dense is None:
            raise TypeError(name)  # the row's own message is shown
        for option, given in (("out", out), ("inplace_", inplace_ or None)):
            if given is not None:
                kwargs[option] = given
        return dense(*args, **kwargs)

    overload(name)(call)


_FUNCTIONS = {
    "matmul": matmul,
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
    "neg": neg,
    "sum": lambda input, dim=None, **options: input.sum(dim, **options),
    "transpose": transpose,
    "index_select": index_select,
    "softmax": lambda input, dim, **options: input.softmax(dim, **options),
    "log_softmax": lambda input, dim, **options: input.log_softmax(dim, **options),
}
for _name, _function in _FUNCTIONS.items():
    _take_sparse(_name, _function)
