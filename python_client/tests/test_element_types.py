# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The twelve element types: storage, conversion, promotion, arithmetic."""

import itertools

import numpy as np
import pytest

import holdfast as hf

# PyTorch's table (torch.promote_types, version 1.13).
SHORT = dict(
    b1="bool",
    u1="uint8",
    i1="int8",
    i2="int16",
    i4="int32",
    i8="int64",
    f2="float16",
    bf="bfloat16",
    f4="float32",
    f8="float64",
    c8="complex64",
    c16="complex128",
)
PROMOTION = """
    b1  u1  i1  i2  i4  i8  f2  bf  f4  f8  c8  c16
    u1  u1  i2  i2  i4  i8  f2  bf  f4  f8  c8  c16
    i1  i2  i1  i2  i4  i8  f2  bf  f4  f8  c8  c16
    i2  i2  i2  i2  i4  i8  f2  bf  f4  f8  c8  c16
    i4  i4  i4  i4  i4  i8  f2  bf  f4  f8  c8  c16
    i8  i8  i8  i8  i8  i8  f2  bf  f4  f8  c8  c16
    f2  f2  f2  f2  f2  f2  f2  f4  f4  f8  c8  c16
    bf  bf  bf  bf  bf  bf  f4  bf  f4  f8  c8  c16
    f4  f4  f4  f4  f4  f4  f4  f4  f4  f8  c8  c16
    f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16
    c8  c8  c8  c8  c8  c8  c8  c8  c8  c16 c8  c16
    c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
"""
TYPES = {name: getattr(hf, name) for name in SHORT.values()}
TABLE = {
    (a, b): SHORT[cell]
    for a, row in zip(TYPES, PROMOTION.split("\n")[1:])
    for b, cell in zip(TYPES, row.split())
}
NUMPY = [n for n in TYPES if n != "bfloat16"]

pytestmark = pytest.mark.usefixtures("torch")


@pytest.mark.parametrize("a", TYPES)
def test_promotion_of_all_pairs(a):
    for b in TYPES:
        x, y = hf.ones(2, dtype=TYPES[a]), hf.ones(2, dtype=TYPES[b])
        want = TYPES[TABLE[a, b]]
        assert (x * y).dtype is want, (a, b)
        assert hf.promote_types(TYPES[a], TYPES[b]) is want, (a, b)
        # Without dimensions the weaker side only counts by its category.
        assert (x * y.sum()).shape == (2,)


def category(name):
    return ["bool", "int", "float", "complex"].index(
        name.rstrip("0123456789").replace("bfloat", "float").replace("uint", "int")
    )


@pytest.mark.parametrize("a", TYPES)
def test_promotion_with_numbers_and_scalar_tensors(a):
    x = hf.ones(2, dtype=TYPES[a])
    for number, default in (
        (True, "bool"),
        (2, "int64"),
        (2.5, "float32"),
        (1j, "complex64"),
    ):
        if category(default) > category(a):
            want = TABLE[a, default] if default == "complex64" else default
        else:
            want = a
        assert (x * number).dtype is TYPES[want], (a, number)
        assert (number * x).dtype is TYPES[want], (a, number)
    for b in TYPES:
        scalar = hf.ones((), dtype=TYPES[b])
        want = TABLE[a, b] if category(b) > category(a) else a
        if category(a) == 2 and category(b) == 3:
            # A float keeps its precision when it becomes complex.
            want = TABLE[a, "complex64"]
        assert (x * scalar).dtype is TYPES[want], (a, b)
        assert hf.result_type(x, scalar) is TYPES[want], (a, b)


@pytest.mark.parametrize("a,b", itertools.product(NUMPY, NUMPY))
def test_conversion(a, b):
    values = np.array([0, 1, 3, 100], dtype=a)
    got = hf.from_numpy(values).to(TYPES[b])
    assert got.dtype is TYPES[b]
    with np.errstate(all="ignore"):
        want = (values.real if not b.startswith("complex") else values).astype(b)
    if b == "bool":
        want = values != 0
    np.testing.assert_array_equal(got.numpy(), want)
    # Strided on both sides.
    target = hf.zeros(4, 2, dtype=TYPES[b])
    target[:, 1] = hf.from_numpy(values).flip(0)
    np.testing.assert_array_equal(target.numpy()[:, 1], want[::-1])


def test_every_half_becomes_its_float_and_comes_back():
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    floats = hf.from_numpy(halves).float()
    np.testing.assert_array_equal(floats.numpy(), halves.astype(np.float32))
    back = floats.half().numpy()
    np.testing.assert_array_equal(back, halves)
    number = ~np.isnan(halves)
    assert np.array_equal(back.view(np.uint16)[number], halves.view(np.uint16)[number])


def test_rounding_to_16_bits():
    rng = np.random.default_rng(0)
    x = np.exp2(rng.uniform(-26, 17, 100_000)) * rng.choice([-1, 1], 100_000)
    x = np.concatenate(
        [x, [65519.99, 65520.0, 2.0**-25, 3 * 2.0**-26, np.inf, np.nan]]
    )
    x = x.astype(np.float32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(
            hf.from_numpy(x).half().numpy(), x.astype(np.float16)
        )
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32)
    want = np.where(np.isnan(x), np.nan, rounded.view(np.float32))
    np.testing.assert_array_equal(hf.from_numpy(x).bfloat16().float().numpy(), want)


def test_bfloat16_has_no_numpy_type():
    with pytest.raises(TypeError, match="bfloat16"):
        hf.ones(2).bfloat16().numpy()
    assert hf.tensor([1.5, -2.0], dtype=hf.bfloat16).tolist() == [1.5, -2.0]


def test_narrow_integers_wrap():
    x = hf.tensor([100, 27, -128], dtype=hf.int8)
    assert (x + x).tolist() == [-56, 54, 0]
    assert (-x).tolist() == [-100, -27, -128]
    assert x.sum().dtype is hf.int64 and x.sum().item() == -1
    assert x.max().dtype is hf.int8
    assert (hf.tensor([300], dtype=hf.int16) * 300).item() == 24464


OPS_16_BITS = [
    lambda x: x * 2 + 1,
    lambda x: x.exp(),
    lambda x: x.sum(0),
    lambda x: x.softmax(1),
    lambda x: x @ x.t(),
    lambda x: hf.cat([x, x]),
    lambda x: x[hf.tensor([2, 0])],
    lambda x: hf.where(x > 0, x, 0),
    lambda x: x.clamp(-1, 1),
    lambda x: x.clone().add_(1),
    lambda x: x.cumsum(0),
]


@pytest.mark.parametrize("dtype", [hf.float16, hf.bfloat16])
@pytest.mark.parametrize("op", OPS_16_BITS)
def test_16_bit_ops_round_once(op, dtype):
    hf.manual_seed(0)
    x = hf.randn(3, 5).to(dtype)
    got = op(x)
    assert got.dtype is dtype
    want = op(x.float()).to(dtype).float().numpy()
    np.testing.assert_allclose(got.float().numpy(), want, rtol=2**-7)


def test_16_bit_training_step():
    w = hf.ones(3, dtype=hf.float16, requires_grad=True)
    (w * hf.tensor([1.0, 2, 3], dtype=hf.float16)).sum().backward()
    assert w.grad.dtype is hf.float16 and w.grad.tolist() == [1, 2, 3]
    hf.optim.SGD([w], lr=0.5).step()
    assert w.tolist() == [0.5, 0, -0.5]


Z = np.array([1 + 2j, -3 + 0.5j, 0.25 - 1j, -1 - 1j])


@pytest.mark.parametrize(
    "name", "exp log sqrt sin cos tanh reciprocal negative conj".split()
)
def test_complex_functions(name):
    ours = {"negative": "neg"}.get(name, name)
    for dtype, tolerance in ((np.complex128, 1e-12), (np.complex64, 1e-5)):
        got = getattr(hf, ours)(hf.from_numpy(Z.astype(dtype))).numpy()
        assert got.dtype == dtype
        np.testing.assert_allclose(got, getattr(np, name)(Z), tolerance)


def test_complex_arithmetic():
    a, b = hf.from_numpy(Z), hf.from_numpy(Z[::-1].copy())
    for ours, want in (
        (a + b, Z + Z[::-1]),
        (a * b, Z * Z[::-1]),
        (a / b, Z / Z[::-1]),
        (a**b, Z ** Z[::-1]),
        (a - 2j, Z - 2j),
        (2 / a, 2 / Z),
        (abs(a), abs(Z)),
        (a.sum(), Z.sum()),
        (a.view(2, 2).mean(0), Z.reshape(2, 2).mean(0)),
        (hf.complex(a.real, a.imag), Z),
        (hf.polar(a.abs(), hf.from_numpy(np.angle(Z))), Z),
        (a.view(2, 2).t()[::2].clone(), Z.reshape(2, 2).T[::2]),
        (hf.view_as_complex(hf.view_as_real(a)), Z),
    ):
        np.testing.assert_allclose(ours.numpy(), want, 1e-12)
    assert a[0].item() == 1 + 2j
    assert hf.tensor([1 + 2j, 3]).dtype is hf.complex64
    with pytest.raises(RuntimeError, match="ComplexDouble"):
        a < b  # noqa: B015


def test_parts_are_views():
    a = hf.zeros(3, dtype=hf.complex64)
    a.imag.fill_(2.0)
    a.real[1] = 5
    assert a.tolist() == [2j, 5 + 2j, 2j]


def test_complex_gradients():
    """By Wirtinger: the gradient of L is dL/dre + j dL/dim."""

    def loss(z):
        y = (z * z + (1 - 2j) * z.conj() + 1 / z).exp()
        return (y.abs() + z.imag).sum()

    z = hf.from_numpy(Z).requires_grad_()
    loss(z * 0.3).backward()
    eps = 1e-6
    for i in range(len(Z)):
        for unit in (1, 1j):
            step = np.zeros_like(Z)
            step[i] = eps * unit
            high, low = (
                loss(hf.from_numpy((Z + s) * 0.3)).item() for s in (step, -step)
            )
            part = z.grad[i].item().real if unit == 1 else z.grad[i].item().imag
            assert abs((high - low) / (2 * eps) - part) < 1e-5 * max(1, abs(part))


def test_printing():
    assert str(hf.tensor([1.5, -2], dtype=hf.float16)) == (
        "tensor([ 1.5000, -2.0000], dtype=holdfast.float16)"
    )
    assert str(hf.tensor([1 + 2j, 3 - 0.5j])) == "tensor([1.+2.0000j, 3.-0.5000j])"


def test_out():
    out = hf.empty(3)
    assert hf.add(hf.ones(3), 2, out=out) is out
    assert out.tolist() == [3, 3, 3]
    alias = out[:2]
    hf.mul(hf.ones(3), 7, out=out)
    assert alias.tolist() == [7, 7]
    small = hf.empty(0)
    hf.exp(hf.zeros(2), out=small)
    assert small.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="can't be cast"):
        hf.exp(hf.zeros(2), out=hf.empty(2, dtype=hf.int64))
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        hf.exp(hf.zeros(2, requires_grad=True), out=hf.empty(2))


def test_phase_and_direction():
    z = hf.from_numpy(Z)
    np.testing.assert_allclose(z.angle().numpy(), np.angle(Z), 1e-12)
    np.testing.assert_allclose(z.sgn().numpy(), Z / abs(Z), 1e-12)
    np.testing.assert_allclose(z.view(2, 2).adjoint().numpy(), Z.reshape(2, 2).conj().T)
    phases = hf.tensor([1.0, -2.0, float("nan")]).angle().numpy()
    np.testing.assert_allclose(phases, [0, np.pi, np.nan], 1e-6)
    assert hf.isreal(hf.tensor([1 + 0j, 2j])).tolist() == [True, False]
    assert hf.isreal(hf.ones(2)).tolist() == [True, True]


def test_casts_that_lose_a_category():
    order = [hf.bool, hf.int16, hf.float32, hf.complex64]
    for i, one in enumerate(order):
        for j, other in enumerate(order):
            assert hf.can_cast(one, other) == (i <= j)


def test_closeness_counts_imaginary_parts():
    x, y = hf.tensor([1 + 2j, 3]), hf.tensor([1 + 5j, 3])
    assert hf.isclose(x, y).tolist() == [False, True]
    assert not hf.allclose(x, y) and hf.allclose(x, x + 1e-9j)
    hf.testing.assert_close(x, x.clone())
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 2"):
        hf.testing.assert_close(x, y)


def test_the_default_type():
    assert hf.get_default_dtype() is hf.float32
    hf.set_default_dtype(hf.float32)
