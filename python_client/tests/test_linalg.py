# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Linear algebra and products: errors, and what op cases do not say.

Values and gradients: tests/op_cases_linalg.py, tests/op_cases_products.py.
"""

import numpy as np
import pytest


def fails_at_read(torch, result, match):
    with pytest.raises(torch.linalg.LinAlgError, match=match) as caught:
        result.tolist()
    assert isinstance(caught.value, RuntimeError)
    assert caught.value.op.startswith("linalg_")


def test_singular_matrices(torch):
    zeros = torch.zeros(2, 2)
    fails_at_read(torch, torch.linalg.inv(zeros), "singular")
    fails_at_read(torch, torch.linalg.solve(zeros, torch.ones(2)), "singular")
    message = "not positive-definite .the leading minor of order 2"
    fails_at_read(
        torch, torch.linalg.cholesky(torch.tensor([[1.0, 0.0], [0.0, -1.0]])), message
    )


def test_the_failing_matrix_is_named(torch):
    batch = torch.stack([torch.eye(2), torch.zeros(2, 2), torch.zeros(2, 2)])
    fails_at_read(torch, torch.linalg.inv(batch), r"\(Batch element 1\)")


@pytest.mark.parametrize("f", ["eigh", "svd", "eigvalsh", "svdvals", "pinv"])
def test_values_that_are_not_finite(torch, f):
    result = getattr(torch.linalg, f)(torch.full((2, 2), float("nan")))
    result = result[0] if isinstance(result, tuple) else result
    fails_at_read(torch, result, "non-finite")


def test_later_calls_work_after_a_failure(torch):
    x = torch.linalg.inv(torch.zeros(2, 2))
    with pytest.raises(torch.linalg.LinAlgError):
        (x + 1).tolist()
    assert torch.linalg.inv(torch.eye(2)).tolist() == [[1, 0], [0, 1]]


def test_shape_and_type_errors(torch):
    wide, vector = torch.ones(2, 3), torch.ones(3)
    for f in (torch.linalg.inv, torch.linalg.eigh, torch.linalg.cholesky, torch.det):
        with pytest.raises(RuntimeError, match="square matrices.* 2 by 3"):
            f(wide)
    for f in (torch.linalg.svd, torch.linalg.qr, torch.linalg.pinv, torch.linalg.inv):
        with pytest.raises(RuntimeError, match="at least 2 dimensions"):
            f(vector)
    with pytest.raises(RuntimeError, match="floating point.* Long"):
        torch.linalg.svd(torch.ones(2, 2, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="Incompatible shapes.*3x3 and 2x1"):
        torch.linalg.solve(torch.eye(3), torch.ones(2, 1))
    with pytest.raises(RuntimeError, match=r"f64\[3,3\]"):
        torch.linalg.solve(torch.eye(3, dtype=torch.float64), torch.ones(3, 1))


def test_argument_errors(torch):
    square = torch.eye(3)
    with pytest.raises(RuntimeError, match="unrecognized mode 'full'"):
        torch.linalg.qr(square, "full")
    with pytest.raises(RuntimeError, match="UPLO"):
        torch.linalg.eigh(square, "X")
    with pytest.raises(RuntimeError, match="driver"):
        torch.linalg.lstsq(square, square, driver="best")
    with pytest.raises(IndexError, match=r"range of \[-2, 1\], but got 2"):
        torch.linalg.matrix_norm(square, dim=(0, 2))
    with pytest.raises(RuntimeError, match=r"different. Got \(0, 0\)"):
        torch.linalg.matrix_norm(square, dim=(0, -2))
    with pytest.raises(RuntimeError, match="Order 3 not supported"):
        torch.linalg.matrix_norm(square, 3)
    with pytest.raises(NotImplementedError, match="driver"):
        torch.linalg.svd(square, driver="gesvd")
    with pytest.raises(AttributeError, match="torch.linalg.jordan"):
        torch.linalg.jordan


def test_pivots_are_checked(torch):
    for pivots in ([0, 1], [1, 3], [-1, 1]):
        order = torch._C.ops.linalg_lu_permutation(
            torch.tensor(pivots, dtype=torch.int32), 2
        )
        fails_at_read(torch, order, "between 1 and 2")


def test_named_results(torch):
    x = torch.eye(3)
    assert torch.linalg.svd(x)._fields == ("U", "S", "Vh")
    assert torch.svd(x)._fields == ("U", "S", "V")
    assert torch.linalg.qr(x).R.shape == (3, 3)
    assert torch.linalg.qr(x, "r").Q.shape == (0,)
    assert torch.linalg.eigh(x).eigenvalues.tolist() == [1, 1, 1]
    assert torch.slogdet(x).logabsdet.item() == 0
    assert torch.linalg.lu_factor(x).pivots.dtype == torch.int32
    values = torch.linalg.lstsq(x, x, driver="gelsd").singular_values
    assert values.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_batches_are_split_over_threads(torch, dtype):
    rng = np.random.default_rng(1)
    a = rng.standard_normal((50, 24, 24)).astype(dtype) + 8 * np.eye(24, dtype=dtype)
    b = rng.standard_normal((50, 24, 3)).astype(dtype)
    x = torch.linalg.solve(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    np.testing.assert_allclose(a @ x, b, 1e-3, 1e-4)
    u, s, vh = (t.numpy() for t in torch.linalg.svd(torch.from_numpy(a)))
    np.testing.assert_allclose((u * s[:, None]) @ vh, a, 1e-3, 1e-3)


def test_condition_of_a_singular_matrix(torch):
    assert torch.linalg.cond(torch.zeros(2, 2), 1).item() == float("inf")


def test_gradient_of_a_complete_qr(torch):
    x = torch.ones(3, 2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="not differentiable"):
        q = torch.linalg.qr(x, "complete").Q
        (g,) = torch.autograd.grad(q.sum(), [x])
        g.tolist()


def test_products_errors(torch):
    a, b = torch.ones(2, 3), torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="3 in dim 1 and second has size 2 in dim 0"):
        torch.tensordot(a, b, 1)
    with pytest.raises(RuntimeError, match=r"\[2, 3\] and \[4\]"):
        torch.inner(a, torch.ones(4))
    with pytest.raises(RuntimeError, match="expected a matrix.* dim 1"):
        torch.trace(torch.ones(3))
    with pytest.raises(RuntimeError, match="columns. X1: 3 X2: 4"):
        torch.cdist(a, torch.ones(2, 4))
    with pytest.raises(RuntimeError, match="at least 2 tensors but got 1"):
        torch.linalg.multi_dot([a])
    with pytest.raises(RuntimeError, match="length 3. Got 2"):
        torch.linalg.cross(a, b, dim=0)


@pytest.mark.parametrize(
    "equation, match",
    [
        ("ij,jk->ik", "subscript j has size 2.* size 3"),
        ("ij,ik->il", "output subscript l does not appear"),
        ("ij,ik->jj", "j appears more than once"),
        ("ijk,ik->i", r"number of subscripts.*\(3\).*dimensions \(2\)"),
        ("i,ik->i", r"number of subscripts.*\(1\).*dimensions \(2\)"),
        ("ij->i", "more operands were provided"),
        ("ij,ij,ij->i", "fewer operands were provided"),
        ("i1,ij->i", "subscripts must be in"),
        ("ii,ij->i", "repeated for operand with sizes 2 and 3|has size 3"),
    ],
)
def test_einsum_errors(torch, equation, match):
    with pytest.raises(RuntimeError, match=match):
        torch.einsum(equation, torch.ones(2, 3), torch.ones(2, 3))


def test_cdist_of_equal_rows_has_a_gradient(torch):
    x = torch.ones(2, 3, requires_grad=True)
    (g,) = torch.autograd.grad(torch.cdist(x, x).sum(), [x])
    assert g.tolist() == [[0, 0, 0]] * 2


def test_addmm_inplace_and_zero_beta(torch):
    x = torch.full((2, 2), float("nan"))
    assert torch.addmm(x, torch.eye(2), torch.eye(2), beta=0).tolist() == [
        [1, 0],
        [0, 1],
    ]
    y = torch.zeros(2, 2)
    y.addbmm_(torch.ones(3, 2, 4), torch.ones(3, 4, 2))
    assert y.tolist() == [[12, 12], [12, 12]]


def test_cdist_of_integers(torch):
    """Of few rows and of many, which go through a product."""
    for rows in (3, 40):
        x = torch.arange(rows).reshape(-1, 1)
        for distances in (torch.cdist(x, x), torch.cdist(x, x.float())):
            assert distances.dtype is torch.float32
            assert distances[0].tolist() == list(range(rows))
        assert torch.pdist(x)[: rows - 1].tolist() == list(range(1, rows))


def test_the_gradient_of_a_symmetric_matrix_is_symmetric(torch):
    a = np.array([[2.0, 1.0, 0.5], [1.0, -1.0, 0.3], [0.5, 0.3, 4.0]])
    weight = np.arange(9.0).reshape(3, 3)
    for upper in "LU":
        x = torch.tensor(a, requires_grad=True)
        values, vectors = torch.linalg.eigh(x, upper)
        again = (vectors * values.unsqueeze(-2)) @ vectors.mT
        (got,) = torch.autograd.grad((again * torch.tensor(weight)).sum(), x)
        np.testing.assert_allclose(got, (weight + weight.T) / 2, atol=1e-12)


def test_norms_of_matrices_without_elements_are_zero(torch):
    for shape in [(0, 0), (3, 0, 4), (3, 4, 0)]:
        for order in (1, 2, float("inf")):
            for keepdim in (False, True):
                x = torch.ones(shape)
                got = torch.linalg.matrix_norm(x, order, keepdim=keepdim)
                want = np.zeros(shape[:-2] + (1, 1) * keepdim)
                np.testing.assert_array_equal(got, want, strict=False)
                assert got.shape == want.shape
    with pytest.raises(IndexError):
        torch.linalg.matrix_norm(torch.ones(0, 0), -1).item()


def test_the_gradient_of_equal_singular_values_is_shared(torch):
    x = torch.zeros(4, 4, requires_grad=True)
    torch.linalg.matrix_norm(x, 2).backward()
    np.testing.assert_allclose(np.abs(x.grad.numpy()).sum(), 1)
    assert np.abs(x.grad.numpy()).max() <= 0.26
    x.grad = None
