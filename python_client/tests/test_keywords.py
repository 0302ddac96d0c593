# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Arguments by PyTorch's names, where functions do not take them from the table."""

import numpy as np
import pytest

from torch_peer import torch as peer

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")

MATRIX = [[2.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 4.0]]

# name -> call on (library, float matrix).
CALLS = {
    "pow": lambda t, a: t.pow(a, exponent=2),
    "pow of two tensors": lambda t, a: t.pow(input=a, exponent=a),
    "pow of a number": lambda t, a: t.pow(2, exponent=a),
    "pow out": lambda t, a: t.pow(a, exponent=2, out=t.empty(3, 3)),
    "Tensor.pow": lambda t, a: a.pow(exponent=0.5),
    "Tensor.pow_": lambda t, a: a.clone().pow_(exponent=3),
    "det": lambda t, a: t.det(input=a),
    "linalg.det": lambda t, a: t.linalg.det(A=a),
    "slogdet": lambda t, a: t.slogdet(input=a)[1],
    "matrix_power": lambda t, a: t.matrix_power(input=a, n=-2),
    "cholesky_solve": lambda t, a: t.cholesky_solve(a, input2=t.linalg.cholesky(a)),
    "cholesky_inverse": lambda t, a: t.cholesky_inverse(input=t.linalg.cholesky(a)),
    "stack axis": lambda t, a: t.stack((a, 2 * a), axis=1),
    "stack out": lambda t, a: t.stack((a, a), dim=2, out=t.empty(3, 3, 2)),
    "tile": lambda t, a: t.tile(a, dims=(2,)),
    "Tensor.tile": lambda t, a: a.tile(dims=(2, 1)),
    "split": lambda t, a: t.split(tensor=a, split_size_or_sections=2, dim=1)[0],
    "randint": lambda t, a: t.randint(high=1, size=(2, 3)),
    "arange": lambda t, a: t.arange(end=5),
    "arange of three": lambda t, a: t.arange(start=1, end=5, step=2),
    "fft out": lambda t, a: t.fft.rfft(a, out=t.empty(3, 2, dtype=t.complex64)),
    "fftfreq": lambda t, a: t.fft.fftfreq(5, d=0.1, device="cpu"),
    "fftfreq of an even number": lambda t, a: t.fft.fftfreq(n=6, dtype=t.float64),
    "rfftfreq": lambda t, a: t.fft.rfftfreq(n=6, device="cpu", requires_grad=True),
    "Hardtanh": lambda t, a: t.nn.Hardtanh(min_value=0, max_value=2.5)(a),
}


@pytest.mark.filterwarnings("ignore:keyword argument")
@pytest.mark.parametrize("name", CALLS)
def test_pytorchs_names(torch, name):
    ours = CALLS[name](torch, torch.tensor(MATRIX))
    theirs = CALLS[name](peer, peer.tensor(MATRIX))
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
    assert (ours.requires_grad, ours.is_leaf) == (theirs.requires_grad, theirs.is_leaf)
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-6
    )


def test_names_that_are_missing(torch):
    with pytest.raises(TypeError, match="arange.*'end'"):
        torch.arange(step=2)
    with pytest.raises(TypeError, match="randint.*'size'"):
        torch.randint(high=2)
    with pytest.raises(TypeError, match="randint.*'high'"):
        torch.randint(size=(2,))


def test_strides_of_ones_own(torch):
    x = torch.empty_strided((2, 3), (1, 2), dtype=torch.float64)
    assert x.stride() == (1, 2) and x.dtype == torch.float64
    x.copy_(torch.arange(6.0).reshape(2, 3))
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert x.new_empty_strided((2, 0), (1, 1)).shape == (2, 0)
    assert torch.empty_strided((), (), requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match=r"size=\[2\], stride=\[1, 1\]"):
        torch.empty_strided((2,), (1, 1))
