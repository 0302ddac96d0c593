# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Modules of PyTorch's that programs import for a name or two."""

import importlib
import math

import numpy as np
import pytest

NAMES = {
    "cuda.random": "manual_seed_all get_rng_state",
    "distributions.utils": "broadcast_all lazy_property probs_to_logits",
    "_tensor": "Tensor",
    "storage": "",
    "masked": "softmax mean",
    "signal": "windows",
    "backends.mkl": "is_available verbose",
}


@pytest.mark.parametrize("module", NAMES)
def test_modules_have_their_names(module):
    found = importlib.import_module(f"holdfast.{module}")
    for name in NAMES[module].split():
        assert hasattr(found, name)
    with pytest.raises(AttributeError, match="no_such_name"):
        found.no_such_name


def test_a_module_of_a_name_takes_no_other_ones_place(torch):
    importlib.import_module("holdfast.cuda.random")
    torch.cuda.seed()
    assert torch.cuda.initial_seed() == torch.initial_seed()


def test_triangles_as_vectors(torch):
    from holdfast.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix

    m = torch.arange(9.0).reshape(3, 3)
    assert tril_matrix_to_vec(m).tolist() == [0, 3, 4, 6, 7, 8]
    assert vec_to_tril_matrix(tril_matrix_to_vec(m)).tolist() == m.tril().tolist()
    low = tril_matrix_to_vec(m, -1)
    assert vec_to_tril_matrix(low, -1).tolist() == m.tril(-1).tolist()


def test_windows(torch):
    windows = torch.signal.windows
    assert np.allclose(windows.hann(5), [0, 0.5, 1, 0.5, 0])
    assert np.allclose(windows.hamming(8, sym=False), torch.hamming_window(8))
    assert np.allclose(windows.bartlett(5), [0, 0.5, 1, 0.5, 0])
    assert np.allclose(windows.cosine(2), [math.sin(math.pi / 4)] * 2)
    assert np.allclose(
        windows.gaussian(3, std=2.0), [math.exp(-1 / 8), 1] * 1 + [math.exp(-1 / 8)]
    )
    assert np.allclose(windows.kaiser(4, beta=3.0), np.kaiser(4, 3.0), atol=1e-6)
    assert windows.nuttall(1).tolist() == [1]


def test_masked(torch):
    masked = torch.masked
    x = torch.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 7.0]])
    mask = torch.tensor([[True, False, True], [False, True, True]])
    assert masked.sum(x, 1, mask=mask).tolist() == [5, 12]
    assert masked.mean(x, 1, mask=mask).tolist() == [2.5, 6]
    assert masked.prod(x, 1, mask=mask).tolist() == [4, 35]
    assert masked.amax(x, 0, mask=mask).tolist() == [1, 5, 7]
    assert masked.var(x, 1, mask=mask).tolist() == [4.5, 2]
    assert masked.var(x, 1, False, mask=mask).tolist() == [2.25, 1]
    assert masked.softmax(x, 1, mask=mask)[0, 1].item() == 0
    assert masked.sum(x).item() == 22
