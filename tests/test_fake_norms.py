# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Normalisation by the CUDA kernels' sources, compiled for the host: the sizes at
which they choose another way through memory, addresses that packs do not fit, large
means, and 16-bit floats beside float32."""

import numpy as np
import pytest

from offset_tensors import tensor_at

EPS = 1e-5
KINDS = ["float16", "bfloat16"]


@pytest.fixture(scope="module")
def module_session(cuda_sources_session):
    return cuda_sources_session


def channels_first(shape, v):
    return v.reshape((1, -1) + (1,) * (len(shape) - 2))


def normalised(x, g, w, b, axes, rest):
    """The result and the gradients of input, weight and bias, in float64. `rest`:
    the axes along which weight and bias do not vary."""
    count = np.prod([x.shape[a] for a in axes])
    d = x - x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt((d * d).mean(axes, keepdims=True) + EPS)
    y, h = d * rstd, g * w
    total = h.sum(axes, keepdims=True) + y * (h * y).sum(axes, keepdims=True)
    return (
        y * w + b,
        rstd * (h - total / count),
        (g * y).sum(rest),
        g.sum(rest),
    )


def check(torch, run, arrays, offset, expected, tolerance):
    g, x, w, b = (tensor_at(torch, a, offset) for a in arrays)
    for leaf in (x, w, b):
        leaf.requires_grad_()
    y = run(x, w, b)
    y.backward(g)
    for got, wanted in zip((y.detach(), x.grad, w.grad, b.grad), expected, strict=True):
        scale = tolerance * max(1, np.abs(wanted).max(initial=0))
        np.testing.assert_allclose(got.numpy(), wanted.reshape(got.shape), 0, scale)


def arrays_of(shape, weights, dtype, mean=0.5):
    rng = np.random.default_rng(3)
    g, x = (rng.standard_normal(shape) for _ in range(2))
    w, b = (rng.uniform(0.5, 2, weights) for _ in range(2))
    return [a.astype(dtype) for a in (g, x + mean, w, b)]


BATCHES = [
    (1, 1, 1, 3),
    (1, 3, 17),
    (2, 1, 1023),
    (3, 5, 4097),
    (3, 4, 7, 7),
    (4, 2, 32, 32),
    (40, 2, 64, 64),  # segments
    (17, 31),
    (17, 33),  # columns, which packs do not fit
    (1023, 64),
    (4097, 36),
]


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("dtype, tolerance", [("f4", 2e-5), ("f8", 1e-11)])
@pytest.mark.parametrize("shape", BATCHES, ids=str)
def test_batch_norm(torch, shape, dtype, tolerance, offset):
    arrays = arrays_of(shape, shape[1], dtype)
    g, x, w, b = (a.astype("f8") for a in arrays)
    axes = (0, *range(2, x.ndim))
    w, b = channels_first(shape, w), channels_first(shape, b)
    expected = normalised(x, g, w, b, axes, axes)

    def run(x, w, b):
        return torch.nn.functional.batch_norm(x, None, None, w, b, True, eps=EPS)

    check(torch, run, arrays, offset, expected, tolerance)


@pytest.mark.parametrize("shape", [(3, 5, 49), (40, 2, 64, 64), (17, 33)], ids=str)
def test_batch_norm_by_running_statistics(torch, shape):
    g, x, w, b = arrays_of(shape, shape[1], "f4")
    rng = np.random.default_rng(1)
    mean = rng.standard_normal(shape[1]).astype("f4")
    var = rng.uniform(0.5, 2, shape[1]).astype("f4")
    leaves = [torch.from_numpy(a).requires_grad_() for a in (x, w, b)]
    stats = torch.from_numpy(mean), torch.from_numpy(var)
    y = torch.nn.functional.batch_norm(leaves[0], *stats, *leaves[1:], False, eps=EPS)
    y.backward(torch.from_numpy(g))
    rstd = channels_first(shape, 1 / np.sqrt(var.astype("f8") + EPS))
    normal = (x - channels_first(shape, mean)) * rstd
    w, b = channels_first(shape, w), channels_first(shape, b)
    axes = (0, *range(2, x.ndim))
    expected = normal * w + b, g * w * rstd, (g * normal).sum(axes), g.sum(axes)
    for got, wanted in zip((y.detach(), *(a.grad for a in leaves)), expected):
        np.testing.assert_allclose(got.numpy(), wanted, 1e-4, 1e-4)


def test_statistics_of_large_means(torch):
    rng = np.random.default_rng(0)
    for shape in [(8, 3, 64, 64), (4096, 40)]:
        x = rng.normal(1e4, 1, shape).astype("f4")
        axes = (0, *range(2, x.ndim))
        mean, var = torch.zeros(shape[1]), torch.zeros(shape[1])
        torch.nn.functional.batch_norm(
            torch.from_numpy(x), mean, var, training=True, momentum=1
        )
        exact = x.astype("f8")
        np.testing.assert_allclose(mean.numpy(), exact.mean(axes), 1e-7)
        np.testing.assert_allclose(var.numpy(), exact.var(axes, ddof=1), 1e-5)
    for n in (100, 4096, 10_000):
        x = rng.normal(1e4, 1, (3, n)).astype("f4")
        y = torch.nn.functional.layer_norm(torch.from_numpy(x), (n,)).numpy()
        expected = (x.astype("f8") - 1e4) / x.astype("f8").std(1, keepdims=True)
        expected -= expected.mean(1, keepdims=True)
        np.testing.assert_allclose(y, expected, 0, 2e-3)  # the mean's last bit


def test_samples_without_elements(torch):
    x = torch.zeros(0, 3, 4).requires_grad_()
    weight = torch.ones(3).requires_grad_()
    y = torch.nn.functional.group_norm(x, 3, weight)
    y.sum().backward()
    assert y.shape == (0, 3, 4) and weight.grad.tolist() == [0, 0, 0]


LAYERS = [(1, 1), (3, 17), (5, 768), (2, 1023), (3, 1024), (2, 4097), (3, 8192)]
LAYERS += [(2, 8200), (3, 20_001), (300, 33), (2000, 64)]


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("dtype, tolerance", [("f4", 2e-5), ("f8", 1e-11)])
@pytest.mark.parametrize("shape", LAYERS, ids=str)
def test_layer_norm(torch, shape, dtype, tolerance, offset):
    arrays = arrays_of(shape, shape[1], dtype)
    g, x, w, b = (a.astype("f8") for a in arrays)

    def run(x, w, b):
        return torch.nn.functional.layer_norm(x, (shape[1],), w, b, EPS)

    expected = normalised(x, g, w, b, (1,), (0,))
    check(torch, run, arrays, offset, expected, tolerance)


GROUPS = [
    ((2, 4, 3), 2),
    ((3, 6), 3),
    ((2, 6, 16), 3),
    ((1, 2, 7, 7), 1),
    ((3, 8, 32, 32), 2),
    ((2, 4, 96, 96), 2),  # long rows
    ((2, 6, 4099), 3),
    ((2, 40_000), 2),
]


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("dtype, tolerance", [("f4", 2e-5), ("f8", 1e-11)])
@pytest.mark.parametrize("shape, groups", GROUPS, ids=str)
def test_group_norm(torch, shape, groups, dtype, tolerance, offset):
    arrays = arrays_of(shape, shape[1], dtype)
    g, x, w, b = (a.astype("f8") for a in arrays)
    split = (shape[0], groups, shape[1] // groups, *shape[2:])
    w, b = (
        np.broadcast_to(channels_first(shape, a), shape).reshape(split) for a in (w, b)
    )
    axes = tuple(range(2, len(split)))
    expected = normalised(
        x.reshape(split), g.reshape(split), w, b, axes, (0, *range(3, len(split)))
    )

    def run(x, w, b):
        return torch.nn.functional.group_norm(x, groups, w, b, EPS)

    check(torch, run, arrays, offset, expected, tolerance)


@pytest.mark.parametrize("n", [6, 1000, 9000])
def test_rms_norm(torch, n):
    g, x, w, _ = arrays_of((3, n), n, "f4")
    leaves = [torch.from_numpy(a).requires_grad_() for a in (x, w)]
    y = torch.nn.functional.rms_norm(leaves[0], (n,), leaves[1], EPS)
    y.backward(torch.from_numpy(g))
    rstd = 1 / np.sqrt((x.astype("f8") ** 2).mean(1, keepdims=True) + EPS)
    h = g * w
    expected = (
        x * rstd * w,
        rstd * (h - x * rstd * (h * x * rstd).mean(1, keepdims=True)),
        (g * x * rstd).sum(0),
    )
    for got, wanted in zip((y.detach(), *(a.grad for a in leaves)), expected):
        np.testing.assert_allclose(got.numpy(), wanted, 1e-4, 1e-4)


def batch_norm(f, x, w, b):
    return f.batch_norm(x, None, None, w, b, True)


def running_batch_norm(f, x, w, b):
    return f.batch_norm(x, b, w, w, b)


def layer_norm(f, x, w, b):
    return f.layer_norm(x, (x.shape[1],), w, b)


def group_norm(f, x, w, b):
    return f.group_norm(x, 3, w, b)


NARROW = [
    (batch_norm, (3, 6, 8, 8)),
    (batch_norm, (3, 6, 7, 7)),
    (batch_norm, (30, 36)),
    (running_batch_norm, (3, 6, 8, 8)),
    (layer_norm, (5, 64)),
    (layer_norm, (5, 67)),
    (layer_norm, (2, 9000)),
    (group_norm, (2, 6, 8, 8)),
    (group_norm, (2, 6, 100, 100)),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("run, shape", NARROW)
def test_16_bits_are_float32_rounded(torch, run, shape, kind):
    dtype = getattr(torch, kind)
    arrays = [torch.from_numpy(a) for a in arrays_of(shape, shape[1], "f4")]
    narrow = [a.to(dtype) for a in arrays]

    def results(tensors):
        g, *leaves = tensors
        for leaf in leaves:
            leaf.requires_grad_()
        y = run(torch.nn.functional, *leaves)
        y.backward(g)
        return [y.detach(), *(leaf.grad for leaf in leaves)]

    wide = results([a.float() for a in narrow])
    ulp = 2.0**-10 if kind == "float16" else 2.0**-7
    for ours, theirs in zip(results(narrow), wide, strict=True):
        assert ours.dtype == dtype
        expected = theirs.numpy()
        # Statistics are stored in 16 bits, and gradients are made from those.
        scale = 4 * ulp * np.abs(expected).max()
        np.testing.assert_allclose(ours.float().numpy(), expected, ulp, scale)
