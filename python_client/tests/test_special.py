# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.special in float64 and float32 against SciPy, over its whole range."""

import numpy as np
import pytest
import scipy.integrate
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


# (a, x) where igamma and igammac change their form, and where numbers are large.
draw = np.random.default_rng(8)


def near(shape, spread):
    return shape * (1 + spread * draw.normal(size=shape.shape) / np.sqrt(shape))


MIDDLE, LARGE = 10 ** draw.uniform(1, 3, 4000), 10 ** draw.uniform(3, 6, 4000)
GAMMA_ARGUMENTS = {
    "small shapes": (
        10 ** draw.uniform(-12, 0, 4000),
        10 ** draw.uniform(-12, 2, 4000),
    ),
    "common": (10 ** draw.uniform(-2, 1.1, 4000), 10 ** draw.uniform(-2, 2, 4000)),
    "the border of three forms": (
        draw.uniform(11, 13, 4000),
        draw.uniform(2, 14, 4000),
    ),
    "middle shapes": (MIDDLE, near(MIDDLE, 4).clip(1e-3)),
    "far away": (MIDDLE, MIDDLE * 10 ** draw.uniform(-1, 1, 4000)),
    # SciPy's expansion ends at 4.5 standard deviations.
    "large shapes": (LARGE, near(LARGE, 1)),
}


@pytest.mark.parametrize("where", GAMMA_ARGUMENTS)
def test_incomplete_gamma(where):
    a, x = GAMMA_ARGUMENTS[where]
    for ours, reference in (("gammainc", sp.gammainc), ("gammaincc", sp.gammaincc)):
        function, expected = getattr(torch.special, ours), reference(a, x)
        wide = function(torch.tensor(a), torch.tensor(x)).numpy()
        np.testing.assert_allclose(wide, expected, rtol=1e-11, atol=1e-290)
        a32, x32 = a.astype(np.float32), x.astype(np.float32)
        narrow = function(torch.tensor(a32), torch.tensor(x32)).numpy()
        expected = reference(a32.astype(float), x32.astype(float))
        assert narrow.dtype == np.float32
        np.testing.assert_allclose(narrow, expected, rtol=1e-6, atol=1e-37)


def test_incomplete_gamma_at_edges():
    """As PyTorch and SciPy have it; and next to 0, where a difference from 1 is all."""
    inf, nan = np.inf, np.nan
    for a, x, lower in (
        (0.0, 0.0, nan),
        (0.0, 1.0, 1),
        (0.0, inf, 1),
        (1.0, 0.0, 0),
        (inf, 0.0, 0),
        (inf, 1.0, 0),
        (1.0, inf, 1),
        (inf, inf, nan),
        (-1.0, 2.0, nan),
        (1.0, -1.0, nan),
        (nan, 1.0, nan),
        (1.0, nan, nan),
        (1e300, 1e300, 0.5),
        (1e20, 1e19, 0),
        (3.0, 1e300, 1),
    ):
        a, x = torch.tensor([a, x], dtype=torch.float64)
        np.testing.assert_equal(torch.igamma(a, x).item(), lower)
        np.testing.assert_equal(torch.igammac(a, x).item(), 1 - lower)
    a, x = torch.tensor([1e-300, 1e-300], dtype=torch.float64)
    expected = sp.gammaincc(1e-300, 1e-300)
    np.testing.assert_allclose(torch.igammac(a, x).item(), expected, rtol=1e-13)


def test_incomplete_gamma_beyond_scipys_expansion():
    """4.6 standard deviations from a large shape, by quadrature of the density."""
    a, sigmas = 9.827e7, -4.6
    log_top = -0.5 * np.log(2 * np.pi) - 1 / (12 * a)

    def density(u):
        return np.exp((a - 1) * np.log1p(u / a**0.5) - u * a**0.5 + log_top)

    expected = scipy.integrate.quad(density, -12, sigmas, epsabs=0, epsrel=1e-12)[0]
    a = torch.tensor(a, dtype=torch.float64)
    np.testing.assert_allclose(
        torch.igamma(a, a + sigmas * a.sqrt()).item(), expected, rtol=1e-10
    )


def test_incomplete_gamma_types_and_gradients():
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    a = torch.tensor([[1.0], [3.0], [7.0]])
    y = torch.igamma(a, x)
    assert tuple(y.shape) == (3, 2)
    y.sum().backward()
    expected = sum(
        np.exp(-x.detach().numpy()) * x.detach().numpy() ** (k - 1) / g
        for k, g in ((1, 1), (3, 2), (7, 720))
    )
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)
    for name in ("igamma", "igammac"):
        b = torch.ones(2, requires_grad=True)
        y = getattr(torch, name)(b, torch.ones(2))
        with pytest.raises(NotImplementedError, match=f"'{name}: input' is not impl"):
            y.sum().backward()
    with pytest.raises(RuntimeError, match="complex"):
        torch.igamma(torch.ones(2, dtype=torch.complex64), torch.ones(2))
    half = torch.igamma(torch.ones(2, dtype=torch.float16), torch.ones(2).half())
    assert half.dtype is torch.float16
    z = torch.ones(2)
    assert z.igamma_(torch.ones(2)) is z and abs(z[0].item() - 0.63212055) < 1e-7
    assert abs(torch.ones(1).igammac_(torch.ones(1)).item() - 0.36787944) < 1e-7
    out = torch.empty(2)
    assert torch.special.gammaincc(torch.ones(2), torch.ones(2), out=out) is out
    assert tuple(torch.igamma(torch.ones(0, 3), torch.ones(3)).shape) == (0, 3)
