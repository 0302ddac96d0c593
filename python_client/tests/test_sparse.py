# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors, against PyTorch's."""

import copy
import pickle

import numpy as np
import pytest
import torch_peer
from torch_peer import assert_close, assert_same_results

import holdfast
from holdfast import errors, nn

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")
peer = torch_peer.torch

INDICES = np.array([[0, 2, 1, 0, 2], [1, 0, 2, 1, 3]])


def pair(indices=INDICES, size=(3, 4), dense=(), dtype=np.float64, seed=0):
    """The same sparse tensor in both, and the values that it is made of."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((indices.shape[1], *dense)).astype(dtype)
    ours, theirs = holdfast.tensor(values), peer.tensor(values)
    ours.requires_grad_(), theirs.requires_grad_()
    a = holdfast.sparse_coo_tensor(holdfast.tensor(indices), ours, (*size, *dense))
    b = peer.sparse_coo_tensor(peer.tensor(indices), theirs, (*size, *dense))
    return a, b, ours, theirs


@pytest.mark.parametrize("dense", [(), (2,)])
def test_to_dense_and_coalesce(dense):
    a, b, ours, theirs = pair(dense=dense)
    assert_same_results(a.to_dense(), b.to_dense(), [ours], [theirs])
    assert a._nnz() == b._nnz() == 5 and not a.is_coalesced()
    a, b = a.coalesce(), b.coalesce()
    assert a.is_coalesced() and a._nnz() == b._nnz() == 4
    assert_close(a.indices(), b.indices())
    assert_close(a.values(), b.values())
    assert (a.sparse_dim(), a.dense_dim()) == (b.sparse_dim(), b.dense_dim())


PRODUCTS = {
    "sparse.mm": lambda t, s, d: t.sparse.mm(s, d),
    "mm": lambda t, s, d: t.mm(s, d),
    "spmm": lambda t, s, d: t.spmm(s, d),
    "matmul": lambda t, s, d: t.matmul(s, d),
    "@": lambda t, s, d: s @ d,
    "Tensor.mm": lambda t, s, d: s.mm(d),
    "twice transposed": lambda t, s, d: (d.t() @ s.t()).t(),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_and_their_gradients(name):
    a, b, ours, theirs = pair()
    dense = np.random.default_rng(1).standard_normal((4, 2))
    (x,), (y,) = torch_peer.leaves([dense])
    product = PRODUCTS[name](holdfast, a, x)
    assert_same_results(product, b.to_dense() @ y, [ours, x], [theirs, y])


def test_products_with_vectors_and_sums():
    a, b, ours, theirs = pair()
    dense = np.random.default_rng(1).standard_normal((4, 2))
    (x,), (y,) = torch_peer.leaves([dense])
    column = b.to_dense() @ y[:, 0]
    assert_same_results(holdfast.mv(a, x[:, 0]), column, [ours, x], [theirs, y])
    start = holdfast.ones(3, 2, dtype=holdfast.float64)
    total = holdfast.sparse.addmm(start, a, x, beta=0.5, alpha=2.0)
    expected = 0.5 + 2.0 * (b.to_dense() @ y)
    assert_close(total, expected)


def test_dense_times_sparse():
    a, b, ours, theirs = pair()
    dense = np.random.default_rng(1).standard_normal((2, 3))
    x, y = holdfast.tensor(dense), peer.tensor(dense)
    assert_same_results(x @ a, y @ b.to_dense(), [ours], [theirs])


def test_sparse_times_sparse():
    a, b, ours, theirs = pair()
    c, d, _, _ = pair(np.array([[0, 3, 3, 1], [2, 0, 1, 2]]), (4, 3), seed=3)
    product = holdfast.sparse.mm(a, c)
    assert product.is_sparse and tuple(product.shape) == (3, 3)
    assert_same_results(
        product.to_dense(), b.to_dense() @ d.to_dense(), [ours], [theirs]
    )


def test_arithmetic():
    a, b, ours, theirs = pair()
    c, d, _, _ = pair(seed=4, indices=INDICES[:, :3])
    dense = np.random.default_rng(1).standard_normal((3, 4))
    x, y = holdfast.tensor(dense), peer.tensor(dense)
    assert_close((a + c).to_dense(), (b + d).to_dense())
    assert_close(holdfast.add(a, c).to_dense(), (b + d).to_dense())
    assert_close((a - c).to_dense(), (b - d).to_dense())
    assert_close(x + a, y + b)
    assert_close((x - a), y - b.to_dense())
    assert_close((2 * a / 4).to_dense(), (2 * b / 4).to_dense())
    assert_close((-a).to_dense(), (-b).to_dense())
    assert_close((a.coalesce() * c.coalesce()).to_dense(), b.to_dense() * d.to_dense())
    assert_close((a * x).to_dense(), b.to_dense() * y)
    assert_close(a.abs().to_dense(), b.to_dense().abs())
    assert_close((a**2).to_dense(), b.to_dense() ** 2)


@pytest.mark.parametrize("dim", [None, 0, 1, (0, 1)])
def test_sums(dim):
    a, b, ours, theirs = pair()
    x, y = holdfast.sparse.sum(a, dim), peer.sparse.sum(b, dim)
    assert x.is_sparse == y.is_sparse
    if x.is_sparse:
        x, y = x.to_dense(), y.to_dense()
    assert_same_results(x, y, [ours], [theirs])


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax(name, dim):
    a, b, _, _ = pair()
    x = getattr(holdfast.sparse, name)(a, dim)
    y = getattr(peer.sparse, name)(b, dim)
    assert_close(x.to_dense(), y.to_dense())


def test_selecting():
    a, b, _, _ = pair()
    for i in (0, -1):
        assert_close(a[i].to_dense(), b.to_dense()[i])
    rows = [2, 0, 2]
    x = holdfast.index_select(a, 0, holdfast.tensor(rows)).to_dense()
    assert_close(x, b.to_dense()[rows])
    with pytest.raises(IndexError, match="out of bounds"):
        a[3]


@pytest.mark.parametrize("sparse_dim", [None, 1])
def test_to_sparse(sparse_dim):
    array = np.array([[0.0, 2.0], [0.0, 0.0], [-1.0, 0.0]])
    (x,), (y,) = torch_peer.leaves([array])
    arguments = () if sparse_dim is None else (sparse_dim,)
    a, b = x.to_sparse(*arguments), y.to_sparse(*arguments)
    assert_close(a.indices(), b.indices())
    assert_close(a.values(), b.values())
    assert_same_results(a.to_dense() * 2, b.to_dense() * 2, [x], [y])


def test_what_it_says_of_itself():
    a = holdfast.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    b = peer.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    assert repr(a).split() == repr(b).split()
    assert isinstance(a, holdfast.Tensor) and holdfast.is_tensor(a) and a.is_sparse
    assert a.layout == holdfast.sparse_coo and a.dtype is holdfast.float32
    assert a.dim() == a.ndim == 2 and a.size(1) == 3 and a.numel() == 6 and len(a) == 2
    assert a.double().to_dense().dtype is holdfast.float64
    assert tuple(a.to("cpu").t().shape) == (3, 2)
    assert isinstance(a, holdfast.sparse.FloatTensor)
    assert tuple(holdfast.sparse_coo_tensor([[1, 0]], [1.0, 1.0]).shape) == (2,)
    assert holdfast.sparse_coo_tensor((2, 2)).to_dense().tolist() == [[0.0] * 2] * 2


def test_copies():
    a, _, ours, _ = pair()
    assert a.requires_grad and not a.detach().requires_grad
    for b in (copy.deepcopy(a.detach()), pickle.loads(pickle.dumps(a)), a.clone()):
        assert b.to_dense().tolist() == a.to_dense().tolist()
    leaf = a.detach().requires_grad_()
    leaf.to_dense().sum().backward()
    assert leaf.grad.is_sparse and leaf.grad._values().tolist() == [1.0] * 5


def test_as_a_buffer():
    class Graph(nn.Module):
        def __init__(self, adjacency):
            super().__init__()
            self.register_buffer("adjacency", adjacency)

    module = Graph(pair()[0].detach())
    assert module.float().adjacency.dtype is holdfast.float32
    module.load_state_dict(module.state_dict(), strict=True)
    assert module.to("cpu").adjacency.is_sparse


def test_functions_of_programs_keep_them():
    class Product(holdfast.autograd.Function):
        """A sparse matrix of these values times b, as graph networks write it."""

        @staticmethod
        def forward(ctx, indices, values, b):
            a = holdfast.sparse_coo_tensor(indices, values, (2, 3))
            ctx.save_for_backward(a, b)
            return holdfast.matmul(a, b)

        @staticmethod
        def backward(ctx, gradient):
            a, b = ctx.saved_tensors
            at = a._indices()
            values = gradient.matmul(b.t())[at[0], at[1]]
            return None, values, a.t().matmul(gradient)

    indices = holdfast.tensor([[0, 1, 1], [2, 0, 1]])
    values = holdfast.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = holdfast.arange(6.0).reshape(3, 2).requires_grad_()
    product = Product.apply(indices, values, b)
    assert product.tolist() == [[4.0, 5.0], [6.0, 11.0]]
    product.sum().backward()
    assert values.grad.tolist() == [9.0, 1.0, 5.0]
    assert b.grad.tolist() == [[2.0, 2.0], [3.0, 3.0], [1.0, 1.0]]


def test_what_it_cannot_do_has_a_name():
    a, _, _, _ = pair()
    with pytest.raises(errors.UnsupportedError, match="Tensor.cumsum of sparse"):
        a.cumsum(0)
    with pytest.raises(TypeError, match="must be Tensor, not"):
        holdfast.relu(a)
    with pytest.raises(TypeError, match="SparseTensor"):
        holdfast.cat([a, a])
    with pytest.raises(errors.UnsupportedError, match="dense"):
        a + 1
    with pytest.raises(errors.UnsupportedError, match="__iadd__"):
        a += a
    with pytest.raises(RuntimeError, match="uncoalesced"):
        a.indices()
    with pytest.raises(AttributeError):
        a.no_such_attribute


def test_bad_input():
    make = holdfast.sparse_coo_tensor
    with pytest.raises(RuntimeError, match="for dim 1, size is 2 but found index 5"):
        make([[0], [5]], [1.0], (2, 2))
    with pytest.raises(RuntimeError, match="negative index -1 for dim 0"):
        make([[-1], [0]], [1.0], (2, 2))
    with pytest.raises(RuntimeError, match="same nnz"):
        make([[0, 1]], [1.0], (2,))
    with pytest.raises(RuntimeError, match="sparse_dim x nnz"):
        make([0, 1], [1.0, 2.0], (2,))
    with pytest.raises(RuntimeError, match="number of dimensions"):
        make([[0]], [1.0], (2, 2))
    with pytest.raises(TypeError, match="int64"):
        make([[0.5]], [1.0], (2,))
    a, _, _, _ = pair()
    with pytest.raises(RuntimeError, match="3x4 and 3x4"):
        holdfast.sparse.mm(a, a)


def test_elements_at_the_places_of_another(torch):
    x = torch.arange(6.0).reshape(2, 3)
    mask = torch.sparse_coo_tensor([[0, 1, 1], [1, 2, 2]], [1.0, 0.0, 2.0], (2, 3))
    found = x.sparse_mask(mask)
    assert found.coalesce().indices().tolist() == [[0, 1], [1, 2]]
    assert found.coalesce().values().tolist() == [1, 5]
