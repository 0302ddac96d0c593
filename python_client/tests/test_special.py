# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.special in float64 and float32 against SciPy, over its whole range."""

import numpy as np
import pytest
import scipy.special as sp

import holdfast as torch

WIDE = np.concatenate(
    [[0.0], *(s * np.geomspace(1e-8, 700, 400) for s in (1, -1)), [np.inf, -np.inf]]
)
ABOVE = np.concatenate([[0.0], np.geomspace(1e-300, 700, 600), [np.inf, np.nan, -1.0]])


def oscillating(function):
    """With its limit at infinity, for which SciPy has NaN."""
    return lambda x: np.where(np.isinf(x), 0.0, function(x))


# (SciPy's function, where, the error allowed beside the relative one)
FUNCTIONS = {
    "bessel_j0": (oscillating(sp.j0), WIDE, 1e-14),
    "bessel_j1": (oscillating(sp.j1), WIDE, 1e-14),
    "bessel_y0": (oscillating(sp.y0), ABOVE, 1e-14),
    "bessel_y1": (oscillating(sp.y1), ABOVE, 1e-14),
    "i0": (sp.i0, WIDE, 0),
    "i0e": (sp.i0e, WIDE, 0),
    "i1": (sp.i1, WIDE, 0),
    "i1e": (sp.i1e, WIDE, 0),
    "modified_bessel_i0": (sp.i0, WIDE, 0),
    "modified_bessel_i1": (sp.i1, WIDE, 0),
    "modified_bessel_k0": (sp.k0, ABOVE, 0),
    "modified_bessel_k1": (sp.k1, ABOVE, 0),
    "scaled_modified_bessel_k0": (sp.k0e, ABOVE, 0),
    "scaled_modified_bessel_k1": (sp.k1e, ABOVE, 0),
    "spherical_bessel_j0": (lambda x: np.sinc(x / np.pi), WIDE[:-2], 1e-13),
    "erfcx": (sp.erfcx, WIDE, 0),
    "log_ndtr": (sp.log_ndtr, WIDE, 0),
    "ndtri": (
        sp.ndtri,
        np.concatenate(
            [
                [0.0, 1.0, 0.5, -0.1, 1.1, np.nan],
                np.geomspace(1e-300, 0.4, 300),
                np.linspace(0.3, 1 - 1e-10, 300),
            ]
        ),
        1e-15,
    ),
    "entr": (sp.entr, np.linspace(-2, 5, 99), 1e-15),
    "ndtr": (sp.ndtr, np.linspace(-30, 9, 99), 1e-300),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name):
    reference, x, absolute = FUNCTIONS[name]
    function = getattr(torch.special, name)
    with np.errstate(all="ignore"):
        expected = reference(x)
        narrow = reference(x.astype(np.float32).astype(float)).astype(np.float32)
    got = function(torch.tensor(x, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=absolute)
    got = function(torch.tensor(x, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(got, narrow, rtol=3e-6, atol=1e-6 * bool(absolute))


def test_types():
    assert torch.special.i0(torch.tensor([1, 2])).dtype is torch.float32
    half = torch.special.erfcx(torch.tensor([0.5, 2.0], dtype=torch.float16))
    assert half.dtype is torch.float16
    np.testing.assert_allclose(half.numpy(), sp.erfcx([0.5, 2.0]), rtol=1e-3)
    x = torch.tensor([0.5, 2.0])
    assert x.i0_() is x and torch.allclose(x, torch.i0(torch.tensor([0.5, 2.0])))
    out = torch.empty(2)
    assert torch.special.i1(torch.tensor([1.0, 2.0]), out=out) is out
    np.testing.assert_allclose(out.numpy(), sp.i1([1.0, 2.0]), rtol=1e-6)
    assert tuple(torch.special.ndtri(torch.empty(0, 3)).shape) == (0, 3)


def test_gradients_at_zero():
    """Where a formula divides by x."""
    for name, slope in (("bessel_j1", 0.5), ("i1", 0.5), ("i1e", 0.5), ("i0", 0.0)):
        x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        getattr(torch.special, name)(x).backward()
        assert x.grad.item() == slope, name
