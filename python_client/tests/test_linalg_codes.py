# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The functions of torch.linalg with a code for each matrix, against PyTorch's codes.

Values and gradients of matrices that allow what is asked: tests/op_cases_linalg.py.
"""

import numpy as np
import pytest
from torch_peer import torch as peer

SINGULAR = np.array(
    [
        [[2.0, 1, 0], [1, 3, 1], [0, 1, 4]],
        [[1, 2, 3], [2, 4, 6], [1, 0, 1]],
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[1, 0, 0], [0, 1, 0], [0, 0, 0]],
    ]
)
# Positive-definite, then the leading minors of order 2, 1 and 3 that are not, then one
# more of order 3 that is exactly 0.
SYMMETRIC = np.array(
    [
        [[4.0, 2, 1], [2, 5, 3], [1, 3, 6]],
        [[4, 2, 1], [2, -1, 3], [1, 3, 5]],
        [[-1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[1, 0, 0], [0, 1, 2], [0, 2, 1]],
        [[1, 0, 0], [0, 1, 0], [0, 0, 0]],
    ]
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_codes_are_pytorchs(torch, dtype):
    for a in (SINGULAR, SINGULAR.reshape(2, 2, 3, 3), SINGULAR[1], SINGULAR[0]):
        a = a.astype(dtype)
        for name in ("inv_ex", "lu_factor_ex"):
            ours = getattr(torch.linalg, name)(torch.from_numpy(a))
            theirs = getattr(peer.linalg, name)(peer.from_numpy(a))
            assert all(hasattr(theirs, field) for field in ours._fields)
            assert type(ours).__name__ == type(theirs).__name__
            assert ours.info.dtype is torch.int32
            if name == "lu_factor_ex":
                assert ours.info.tolist() == theirs.info.tolist()
            # PyTorch factors the transposed matrix, whose first 0 may be another.
            assert (ours.info != 0).tolist() == (theirs.info != 0).tolist(), name
        result = torch.linalg.solve_ex(torch.from_numpy(a), torch.from_numpy(a))
        assert result.info.tolist() == ours.info.tolist()
    for a in (SYMMETRIC, *SYMMETRIC):
        a = a.astype(dtype)
        for upper in (False, True):
            ours = torch.linalg.cholesky_ex(torch.from_numpy(a), upper=upper)
            theirs = peer.linalg.cholesky_ex(peer.from_numpy(a), upper=upper)
            assert ours.info.tolist() == theirs.info.tolist()
            assert ours.info.dtype is torch.int32


def test_the_other_matrices_of_a_batch_have_their_results(torch):
    a = torch.from_numpy(SINGULAR)
    inverse, info = torch.linalg.inv_ex(a)
    np.testing.assert_allclose(inverse[0].numpy(), np.linalg.inv(SINGULAR[0]))
    assert not inverse[1:].isfinite().all(-1).all(-1).any()
    x, info = torch.linalg.solve_ex(a, torch.ones(3, dtype=torch.float64))
    np.testing.assert_allclose(
        x[0].numpy(), np.linalg.solve(SINGULAR[0], np.ones(3)), rtol=1e-12
    )
    L, info = torch.linalg.cholesky_ex(torch.from_numpy(SYMMETRIC))
    assert info.tolist() == [0, 2, 1, 3, 3]
    np.testing.assert_allclose(L[0].numpy(), np.linalg.cholesky(SYMMETRIC[0]))
    assert L[1:].isnan().all()


def test_gradients_of_the_others_are_theirs(torch):
    a = torch.from_numpy(SYMMETRIC).requires_grad_()
    L, info = torch.linalg.cholesky_ex(a)
    L[info == 0].sum().backward()
    alone = torch.from_numpy(SYMMETRIC[0]).requires_grad_()
    torch.linalg.cholesky(alone).sum().backward()
    np.testing.assert_allclose(a.grad[0].numpy(), alone.grad.numpy(), rtol=1e-12)
    assert (a.grad[1:] == 0).all()


def test_more_jitter_until_it_works(torch):
    """What programs use the codes for."""
    a = torch.from_numpy(np.full((4, 8, 8), 1.0, np.float32))
    jitter, tries = 1e-10, 0
    L, info = torch.linalg.cholesky_ex(a)
    while info.any():
        jitter, tries = jitter * 10, tries + 1
        failed = (info > 0)[:, None, None]
        a = torch.where(failed, a + jitter * torch.eye(8), a)
        L, info = torch.linalg.cholesky_ex(a)
        assert tries < 12
    assert tries > 0
    np.testing.assert_allclose((L @ L.mT).numpy(), 1.0, atol=1e-2)


def test_check_errors(torch):
    a, s = torch.from_numpy(SINGULAR), torch.from_numpy(SYMMETRIC)
    LinAlgError = torch.linalg.LinAlgError
    with pytest.raises(LinAlgError, match=r"inv_ex: \(Batch element 1\): The diag.* 3"):
        torch.linalg.inv_ex(a, check_errors=True)
    with pytest.raises(LinAlgError, match="inv_ex: The diagonal element 3 is zero"):
        torch.linalg.inv_ex(a[1], check_errors=True)
    with pytest.raises(LinAlgError, match=r"element 1\): .* singular"):
        torch.linalg.solve_ex(a, a, check_errors=True)
    with pytest.raises(LinAlgError, match=r"element 1\): U\[3,3\] is zero"):
        torch.linalg.lu_factor_ex(a, check_errors=True)
    with pytest.raises(LinAlgError, match=r"element 1\): .* minor of order 2"):
        torch.linalg.cholesky_ex(s, check_errors=True)
    for name in ("inv_ex", "lu_factor_ex", "cholesky_ex"):
        assert getattr(torch.linalg, name)(s[0], check_errors=True).info.item() == 0


def test_shapes(torch):
    for shape in ((0, 3, 3), (2, 0, 0), (0, 0), (3, 0, 2, 2)):
        for name in ("inv_ex", "cholesky_ex", "lu_factor_ex"):
            ours = getattr(torch.linalg, name)(torch.ones(shape))
            theirs = getattr(peer.linalg, name)(peer.ones(shape))
            assert [tuple(t.shape) for t in ours] == [tuple(t.shape) for t in theirs]
            assert ours.info.tolist() == theirs.info.tolist()
    for shape in ((2, 3, 5), (2, 5, 3), (0, 4), (4, 0)):
        ours = torch.linalg.lu_factor_ex(torch.zeros(shape))
        theirs = peer.linalg.lu_factor_ex(peer.zeros(shape))
        assert [tuple(t.shape) for t in ours] == [tuple(t.shape) for t in theirs]
        assert ours.info.tolist() == theirs.info.tolist()
    for name in ("inv_ex", "cholesky_ex"):
        with pytest.raises(RuntimeError, match="square matrices.* 2 by 3"):
            getattr(torch.linalg, name)(torch.ones(2, 3))
        with pytest.raises(RuntimeError, match="at least 2 dimensions"):
            getattr(torch.linalg, name)(torch.ones(3))


def test_solve_ex_takes_what_solve_takes(torch):
    rng = np.random.default_rng(5)
    for a, b, left in (
        ((3, 3), (3,), True),
        ((3, 3), (3,), False),
        ((2, 3, 3), (2, 3), True),
        ((2, 3, 3), (2, 3), False),
        ((2, 3, 3), (3, 4), True),
        ((3, 3), (2, 4, 3), False),
    ):
        A, B = torch.from_numpy(rng.random(a)), torch.from_numpy(rng.random(b))
        result = torch.linalg.solve_ex(A, B, left=left).result
        expected = torch.linalg.solve(A, B, left=left)
        assert result.shape == expected.shape
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-8)


def test_lu_by_its_old_name(torch):
    a = torch.from_numpy(SINGULAR)
    LU, pivots, info = torch.lu(a, get_infos=True)
    assert info.tolist() == [0, 3, 1, 3]
    assert len(torch.lu(a)) == len(a.lu()) == 2
    assert a.lu(get_infos=True)[2].tolist() == [0, 3, 1, 3]
    out = tuple(torch.empty_like(t) for t in (LU, pivots, info))
    result = torch.lu(a, get_infos=True, out=out)
    assert result[2] is out[2] and out[2].tolist() == [0, 3, 1, 3]


def test_out(torch):
    a = torch.eye(3)
    out = torch.empty(3, 3), torch.empty((), dtype=torch.int32)
    result = torch.linalg.inv_ex(a, out=out)
    assert result[0] is out[0] and out[0].tolist() == a.tolist()
