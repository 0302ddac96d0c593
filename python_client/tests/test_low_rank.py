# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""svd_lowrank and pca_lowrank."""

import numpy as np
import pytest


def matrix(torch, *shape, rank=3):
    rng = np.random.default_rng(0)
    left = rng.normal(size=(*shape[:-1], rank))
    return torch.tensor(left @ rng.normal(size=(*shape[:-2], rank, shape[-1])))


@pytest.mark.parametrize("shape", [(20, 8), (8, 20), (2, 12, 7)])
def test_svd_of_what_has_few_singular_values(torch, shape):
    torch.manual_seed(0)
    A = matrix(torch, *shape)
    U, S, V = torch.svd_lowrank(A, q=4)
    assert U.shape == (*shape[:-1], 4) and V.shape == (*shape[:-2], shape[-1], 4)
    np.testing.assert_allclose(U * S.unsqueeze(-2) @ V.mT, A, atol=1e-10)
    exact = np.linalg.svd(A.numpy(), compute_uv=False)[..., :3]
    np.testing.assert_allclose(S[..., :3], exact, 1e-10)


def test_principal_components(torch):
    A = matrix(torch, 30, 6) + 5
    U, S, V = torch.pca_lowrank(A, q=3)
    centred = A - A.mean(0)
    exact = np.linalg.svd(centred.numpy(), compute_uv=False)[:3]
    np.testing.assert_allclose(S, exact, 1e-9)
    np.testing.assert_allclose((centred @ V).norm(dim=0), exact, 1e-9)
    M = A.mean(0, keepdim=True)
    np.testing.assert_allclose(torch.svd_lowrank(A, 3, M=M)[1], exact, 1e-9)


def test_more_components_than_there_are(torch):
    with pytest.raises(ValueError, match=r"q\(=9\).*min\(m, n\)=6"):
        torch.pca_lowrank(torch.ones(30, 6), q=9)
    with pytest.raises(ValueError, match=r"niter\(=-1\)"):
        torch.pca_lowrank(torch.ones(30, 6), niter=-1)
