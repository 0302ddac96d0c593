# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""holdfast.array_api against the array API standard, revision 2025.12: its names and
signatures, promotion, and what it asks beyond PyTorch. NumPy is the reference."""

import inspect

import numpy
import pytest

import holdfast
from holdfast import array_api as xp

# As in the standard: `name(parameters)`, without types.
FUNCTIONS = """
    arange(start, /, stop=None, step=1, *, dtype=None, device=None)
    asarray(obj, /, *, dtype=None, device=None, copy=None)
    empty(shape, *, dtype=None, device=None)
    empty_like(x, /, *, dtype=None, device=None)
    eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
    from_dlpack(x, /, *, device=None, copy=None)
    full(shape, fill_value, *, dtype=None, device=None)
    full_like(x, /, fill_value, *, dtype=None, device=None)
    linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
    meshgrid(*arrays, indexing='xy')
    ones(shape, *, dtype=None, device=None)
    ones_like(x, /, *, dtype=None, device=None)
    tril(x, /, *, k=0)
    triu(x, /, *, k=0)
    zeros(shape, *, dtype=None, device=None)
    zeros_like(x, /, *, dtype=None, device=None)
    astype(x, dtype, /, *, copy=True, device=None)
    can_cast(from_, to, /)
    finfo(type, /)
    iinfo(type, /)
    isdtype(dtype, kind)
    result_type(*arrays_and_dtypes)
    clip(x, /, min=None, max=None)
    take(x, indices, /, *, axis=None)
    take_along_axis(x, indices, /, *, axis=-1)
    __array_namespace_info__()
    matmul(x1, x2, /)
    matrix_transpose(x, /)
    tensordot(x1, x2, /, *, axes=2)
    vecdot(x1, x2, /, *, axis=-1)
    broadcast_arrays(*arrays)
    broadcast_shapes(*shapes)
    broadcast_to(x, /, shape)
    concat(arrays, /, *, axis=0)
    expand_dims(x, /, axis)
    flip(x, /, *, axis=None)
    moveaxis(x, source, destination, /)
    permute_dims(x, /, axes)
    repeat(x, repeats, /, *, axis=None)
    reshape(x, /, shape, *, copy=None)
    roll(x, /, shift, *, axis=None)
    squeeze(x, /, axis)
    stack(arrays, /, *, axis=0)
    tile(x, repetitions, /)
    unstack(x, /, *, axis=0)
    argmax(x, /, *, axis=None, keepdims=False)
    argmin(x, /, *, axis=None, keepdims=False)
    count_nonzero(x, /, *, axis=None, keepdims=False)
    nonzero(x, /)
    searchsorted(x1, x2, /, *, side='left', sorter=None)
    where(condition, x1, x2, /)
    isin(x1, x2, /, *, invert=False)
    unique_all(x, /)
    unique_counts(x, /)
    unique_inverse(x, /)
    unique_values(x, /)
    argsort(x, /, *, axis=-1, descending=False, stable=True)
    sort(x, /, *, axis=-1, descending=False, stable=True)
    cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
    cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
    max(x, /, *, axis=None, keepdims=False)
    mean(x, /, *, axis=None, keepdims=False)
    min(x, /, *, axis=None, keepdims=False)
    prod(x, /, *, axis=None, dtype=None, keepdims=False)
    std(x, /, *, axis=None, correction=0.0, keepdims=False)
    sum(x, /, *, axis=None, dtype=None, keepdims=False)
    var(x, /, *, axis=None, correction=0.0, keepdims=False)
    all(x, /, *, axis=None, keepdims=False)
    any(x, /, *, axis=None, keepdims=False)
    diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
    linalg.cholesky(x, /, *, upper=False)
    linalg.cross(x1, x2, /, *, axis=-1)
    linalg.det(x, /)
    linalg.diagonal(x, /, *, offset=0)
    linalg.eig(x, /)
    linalg.eigh(x, /)
    linalg.eigvals(x, /)
    linalg.eigvalsh(x, /)
    linalg.inv(x, /)
    linalg.matmul(x1, x2, /)
    linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')
    linalg.matrix_power(x, n, /)
    linalg.matrix_rank(x, /, *, rtol=None)
    linalg.matrix_transpose(x, /)
    linalg.outer(x1, x2, /)
    linalg.pinv(x, /, *, rtol=None)
    linalg.qr(x, /, *, mode='reduced')
    linalg.slogdet(x, /)
    linalg.solve(x1, x2, /)
    linalg.svd(x, /, *, full_matrices=True)
    linalg.svdvals(x, /)
    linalg.tensordot(x1, x2, /, *, axes=2)
    linalg.trace(x, /, *, offset=0, dtype=None)
    linalg.vecdot(x1, x2, /, *, axis=-1)
    linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
    fft.fftfreq(n, /, *, d=1.0, dtype=None, device=None)
    fft.rfftfreq(n, /, *, d=1.0, dtype=None, device=None)
    fft.fftshift(x, /, *, axes=None)
    fft.ifftshift(x, /, *, axes=None)
"""
UNARY = """
    abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1
    floor imag isfinite isinf isnan log log10 log1p log2 logical_not negative positive
    real reciprocal round sign signbit sin sinh sqrt square tan tanh trunc
""".split()
BINARY = """
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
    copysign divide equal floor_divide greater greater_equal hypot less less_equal
    logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter
    not_equal pow remainder subtract
""".split()
TYPES = """
    bool int8 int16 int32 int64 uint8 float32 float64 complex64 complex128
""".split()
SIGNATURES = {
    **dict(line.strip()[:-1].split("(", 1) for line in FUNCTIONS.strip().splitlines()),
    **dict.fromkeys(UNARY, "x, /"),
    **dict.fromkeys(BINARY, "x1, x2, /"),
    **{
        f"fft.{name}": "x, /, *, n=None, axis=-1, norm='backward'"
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    },
    **{
        f"fft.{name}": "x, /, *, s=None, axes=None, norm='backward'"
        for name in ("fftn", "ifftn", "rfftn", "irfftn")
    },
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name):
    """Every name of the standard, and just its parameters."""
    owner, _, last = name.rpartition(".")
    f = getattr(getattr(xp, owner) if owner else xp, last)
    assert str(inspect.signature(f)) == f"({SIGNATURES[name]})"
    assert f.__doc__


def test_names():
    """`import *` gives the standard's names, all of them, and no other."""
    own = {name for name in SIGNATURES if "." not in name}
    constants = {"e", "inf", "nan", "newaxis", "pi", "linalg", "fft"}
    assert set(xp.__all__) == own | constants | set(TYPES)
    assert len(xp.__all__) == len(set(xp.__all__))
    for extension in (xp.linalg, xp.fft):
        prefix = extension.__name__.rpartition(".")[2] + "."
        theirs = {n.removeprefix(prefix) for n in SIGNATURES if n.startswith(prefix)}
        assert set(extension.__all__) == theirs
    assert xp.__array_api_version__ == "2025.12"


def test_namespace_of_a_tensor(torch):
    x = torch.ones(2)
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="Got '2020.01'"):
        x.__array_namespace__(api_version="2020.01")
    assert x.to_device("cpu") is x and x.device == torch.device("cpu")
    with pytest.raises(ValueError, match="stream=None. Got 1"):
        x.to_device("cpu", stream=1)


def test_info(torch):
    info = xp.__array_namespace_info__()
    capabilities = info.capabilities()
    assert capabilities["boolean indexing"] and capabilities["data-dependent shapes"]
    most = capabilities["max dimensions"]
    assert xp.zeros((1,) * most).ndim == most
    with pytest.raises(RuntimeError, match=f"at most {most} dimensions"):
        xp.zeros((1,) * (most + 1))
    assert info.default_device() in info.devices()
    assert set(info.dtypes()) == set(TYPES)
    for kind in ("bool", "signed integer", "real floating", ("integral", "bool")):
        for name, dtype in info.dtypes(kind=kind).items():
            assert getattr(xp, name) is dtype and xp.isdtype(dtype, kind)
    assert list(info.dtypes(kind="unsigned integer")) == ["uint8"]
    with pytest.raises(ValueError, match="Got 'float'"):
        info.dtypes(kind="float")
    assert info.default_dtypes() == {
        "real floating": torch.float32,
        "complex floating": torch.complex64,
        "integral": torch.int64,
        "indexing": torch.int64,
    }


def test_0d_tensors_count_in_promotion(torch):
    """In PyTorch's functions they do not."""
    x, one = xp.ones(2, dtype=xp.float32), xp.ones((), dtype=xp.float64)
    assert torch.add(x, one).dtype is torch.float32
    for name in ("add", "multiply", "hypot", "maximum", "atan2", "pow"):
        assert getattr(xp, name)(x, one).dtype is xp.float64
        assert getattr(xp, name)(one, x).dtype is xp.float64
    assert xp.where(x > 0, x, one).dtype is xp.float64
    assert xp.result_type(x, one) is xp.float64
    assert xp.result_type(xp.int8, xp.uint8) is xp.int16
    assert xp.result_type(xp.float32, 1j) is xp.complex64
    with pytest.raises(ValueError, match=r"Got \(1, 2.0\)"):
        xp.result_type(1, 2.0)


@pytest.mark.parametrize("name", [n for n in BINARY if "bit" not in n])
def test_python_numbers(torch, name):
    """On either side of an array, and its type stays."""
    f = getattr(xp, name)
    number = True if "logical" in name else 2.0
    dtype = xp.bool if "logical" in name else xp.float32
    x = xp.asarray([1, 3], dtype=dtype)
    for got, want in (
        (f(x, number), f(x, xp.full((2,), number, dtype=dtype))),
        (f(number, x), f(xp.full((2,), number, dtype=dtype), x)),
    ):
        assert got.dtype is want.dtype and got.tolist() == want.tolist()


def test_shifts_of_python_numbers(torch):
    x = xp.asarray([1, 2], dtype=xp.int8)
    for got in (xp.bitwise_left_shift(3, x), 3 << x):
        assert got.dtype is xp.int8 and got.tolist() == [6, 12]
    assert (24 >> x).tolist() == [12, 6] and (x << 1).tolist() == [2, 4]
    x <<= 2
    assert x.tolist() == [4, 8]
    with pytest.raises(TypeError):
        "3" << x


def test_copies_and_views(torch):
    x = xp.asarray([[1.0, 2.0]])
    assert xp.asarray(x) is x
    copied = xp.asarray(x, copy=True)
    copied[0, 0] = 7
    assert x.tolist() == [[1, 2]]
    with pytest.raises(ValueError, match="float32 on cpu must be copied"):
        xp.asarray(x, dtype=xp.float64, copy=False)
    with pytest.raises(ValueError, match="a list is always copied"):
        xp.asarray([1], copy=False)
    with pytest.raises(ValueError, match="a ndarray is always copied"):
        xp.from_dlpack(numpy.ones(2), copy=False)
    assert xp.from_dlpack(numpy.ones(2)).dtype is xp.float64
    view = xp.reshape(x, (2,), copy=False)
    view[0] = 5
    assert x.tolist() == [[5, 2]]
    with pytest.raises(ValueError, match="view"):
        xp.reshape(xp.ones((2, 3)).mT, (6,), copy=False)
    assert xp.astype(x, xp.float32, copy=False) is x
    assert xp.astype(x, xp.float32) is not x
    with pytest.raises(TypeError, match="complex64 cannot become float32"):
        xp.astype(xp.full(2, 1j), xp.float32)


def test_creation(torch):
    assert xp.arange(3, 0).shape == (0,) and xp.arange(3, 0).dtype is xp.int64
    assert xp.full((2,), 1 + 2j).tolist() == [1 + 2j] * 2
    assert xp.eye(3, 4, k=-1).tolist() == numpy.eye(3, 4, k=-1).tolist()
    got = xp.linspace(1j, 2, 5, endpoint=False)
    want = numpy.linspace(1j, 2, 5, endpoint=False)
    numpy.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    x, y = xp.meshgrid(xp.arange(2), xp.arange(3))
    assert x.shape == (3, 2) and y.tolist() == [[0, 0], [1, 1], [2, 2]]


def test_axes(torch):
    """None, one, several, and none of them."""
    x = xp.reshape(xp.arange(24, dtype=xp.float64), (2, 3, 4)) + 1
    reference = x.numpy()
    for name in ("sum", "prod", "mean", "max", "min", "var", "std", "all", "any"):
        for axis in (None, 1, -1, (0, 2), (2, 0)):
            for keepdims in (False, True):
                got = getattr(xp, name)(x, axis=axis, keepdims=keepdims)
                want = getattr(numpy, name)(reference, axis=axis, keepdims=keepdims)
                numpy.testing.assert_allclose(got.numpy(), want, err_msg=name)
        assert getattr(xp, name)(x, axis=()).shape == x.shape
    assert xp.sum(x, axis=()).tolist() == x.tolist()
    assert xp.count_nonzero(x, axis=(0, 1), keepdims=True).tolist() == [[[6] * 4]]
    with pytest.raises(ValueError, match=r"twice. Got \(0, -3\)"):
        xp.sum(x, axis=(0, -3))
    with pytest.raises(IndexError, match="axis 3 is out of range for 3"):
        xp.max(x, axis=3)
    small = xp.asarray([100, 100], dtype=xp.int8)
    assert xp.sum(small).dtype is xp.int64 and xp.sum(small).item() == 200
    assert xp.sum(small, dtype=xp.int8).dtype is xp.int8
    assert xp.cumulative_sum(small, include_initial=True).tolist() == [0, 100, 200]


def test_complex_sums_and_products(torch):
    values = numpy.array([[1 + 2j, 3 - 1j, 0.5j], [2, -1j, 1 + 1j]])
    x = xp.asarray(values)
    numpy.testing.assert_allclose(xp.prod(x).numpy(), values.prod())
    numpy.testing.assert_allclose(xp.prod(x, axis=0).numpy(), values.prod(0))
    numpy.testing.assert_allclose(
        xp.cumulative_prod(x, axis=1).numpy(), values.cumprod(1)
    )
    numpy.testing.assert_allclose(
        xp.cumulative_sum(x, axis=0).numpy(), values.cumsum(0)
    )
    assert xp.all(x).item() and not xp.any(x * 0).item()


def test_sets(torch):
    nan = float("nan")
    x = xp.asarray([[3.0, nan, 1.0], [3.0, nan, -0.0]])
    values, indices, inverse, counts = xp.unique_all(x)
    numpy.testing.assert_array_equal(values.numpy(), [0, 1, 3, nan, nan])
    assert indices.tolist() == [5, 2, 0, 1, 4] and counts.tolist() == [1, 1, 2, 1, 1]
    numpy.testing.assert_array_equal(xp.take(values, inverse).numpy(), x.numpy())
    assert xp.unique_values(xp.asarray([2j, 1, 2j, 1j])).tolist() == [1j, 2j, 1]
    assert xp.unique_counts(xp.asarray([], dtype=xp.int8)).counts.tolist() == []
    assert xp.isin(3, xp.asarray([1, 3])).item()
    assert xp.isin(xp.asarray([1, 2]), 2, invert=True).tolist() == [True, False]


def test_manipulation(torch):
    x = xp.reshape(xp.arange(6), (1, 2, 3))
    assert xp.squeeze(x, 0).shape == (2, 3)
    with pytest.raises(ValueError, match="axis 1 has size 2, not 1"):
        xp.squeeze(x, 1)
    assert xp.expand_dims(x, (0, -1)).shape == (1, 1, 2, 3, 1)
    assert xp.flip(x).tolist() == [[[5, 4, 3], [2, 1, 0]]]
    assert xp.roll(x, 1).tolist() == [[[5, 0, 1], [2, 3, 4]]]
    assert xp.roll(x, 1, axis=(1, 2)).tolist() == [[[5, 3, 4], [2, 0, 1]]]
    assert xp.repeat(x, xp.asarray([2, 1], dtype=xp.int8), axis=1).shape == (1, 3, 3)
    both = xp.concat([x, xp.ones(1, dtype=xp.float64)], axis=None)
    assert both.dtype is xp.float64 and both.shape == (7,)
    assert xp.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert xp.broadcast_shapes((None, 1), (2,)) == (None, 2)
    with pytest.raises(ValueError, match=r"Got \(\(2,\), \(3,\)\)"):
        xp.broadcast_shapes((2,), (3,))
    assert xp.take(x, xp.asarray([[0, -1]]), axis=2).tolist() == [[[[0, 2]], [[3, 5]]]]
    order = xp.asarray([[[2], [-1]]])
    assert xp.take_along_axis(x, order).tolist() == [[[2], [5]]]


def test_clip(torch):
    x = xp.asarray([-3.0, 0.0, 5.0])
    assert xp.clip(x, -1, xp.asarray([1.0, 1.0, 2.0])).tolist() == [-1, 0, 2]
    small = xp.asarray([1, 2], dtype=xp.int8)
    assert xp.clip(small, -1000, 1).tolist() == [1, 1]
    assert xp.clip(small, -1000, 1).dtype is xp.int8
    assert xp.isnan(xp.clip(x, float("nan"))).tolist() == [True] * 3


def complex_grid():
    parts = [0.0, -0.0, 0.3, -0.3, 1.0, -2.5, 20.0, numpy.inf, -numpy.inf, numpy.nan]
    return numpy.array([complex(a, b) for a in parts for b in parts])


INVERSE = {"acos": "arccos", "asin": "arcsin", "atan": "arctan"}
COMPLEX_FUNCTIONS = """
    acos acosh asin asinh atan atanh cos cosh exp log10 log1p log2 sin sinh sqrt tan
    tanh
""".split()


@pytest.mark.parametrize("name", COMPLEX_FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_complex_function(torch, name):
    """At infinities and NaN, and on both sides of branch cuts, too."""
    grid = complex_grid()
    reference = name.replace("ac", "arcc", 1).replace("as", "arcs", 1)
    reference = reference.replace("at", "arct", 1) if name[0] == "a" else name
    want = getattr(numpy, reference)(grid)
    got = getattr(xp, name)(xp.asarray(grid)).numpy()
    for part, other in (("real", "imag"), ("imag", "real")):
        g, w = getattr(got, part), getattr(want, part)
        # Beside a NaN the sign of an infinity is not specified.
        free = numpy.isnan(getattr(want, other)) & numpy.isinf(w)
        g, w = (numpy.where(free, numpy.abs(v), v) for v in (g, w))
        numpy.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-15)


def test_complex_expm1(torch):
    inf, nan = numpy.inf, numpy.nan
    cases = {
        1e-9 + 1e-9j: 1e-9 + 1.000000001e-9j,
        complex(inf, 0): complex(inf, 0),
        complex(-inf, inf): -1 + 0j,
        complex(inf, nan): complex(inf, nan),
        complex(nan, 0): complex(nan, 0),
    }
    got = xp.expm1(xp.asarray(numpy.array(list(cases)))).numpy()
    numpy.testing.assert_allclose(got, list(cases.values()), rtol=1e-9)


def test_linalg(torch):
    a = numpy.random.default_rng(0).normal(size=(2, 3, 3))
    x = xp.asarray(a)
    assert xp.linalg.solve(x, xp.ones(3, dtype=xp.float64)).shape == (2, 3)
    got = xp.linalg.solve(x[0], xp.ones((4, 3, 2), dtype=xp.float64)).numpy()
    want = numpy.linalg.solve(a[0], numpy.ones((4, 3, 2)))
    numpy.testing.assert_allclose(got, want)
    got = xp.linalg.cross(x, xp.asarray([1, 2, 3]))
    numpy.testing.assert_allclose(got.numpy(), numpy.cross(a, [1, 2, 3]))
    for ord in ("fro", "nuc", 1, -1, 2, -2, numpy.inf, -numpy.inf):
        got = xp.linalg.matrix_norm(x, ord=ord, keepdims=True)
        want = numpy.linalg.norm(a, ord, (-2, -1), True)
        numpy.testing.assert_allclose(got.numpy(), want)
    got = xp.linalg.vector_norm(x * 1j, axis=(0, 1))
    numpy.testing.assert_allclose(got.numpy(), numpy.sqrt((a**2).sum((0, 1))))
    assert xp.linalg.matrix_rank(x, rtol=xp.asarray([2.0, 0.0])).tolist() == [0, 3]
    with pytest.raises(ValueError, match="Got 0"):
        xp.vecdot(x, x, axis=0)
    got = xp.vecdot(x * 1j, x, axis=-2).numpy()
    numpy.testing.assert_allclose(got, -1j * (a * a).sum(-2))


def test_tensors_of_the_package_work_in_it(torch):
    """Gradients flow through its functions."""
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    y = xp.sum(xp.multiply(xp.exp(x), xp.asarray(2.0)))
    y.backward()
    assert y.dtype is holdfast.float64
    numpy.testing.assert_allclose(x.grad.numpy(), 2 * numpy.exp([1.0] * 3))
