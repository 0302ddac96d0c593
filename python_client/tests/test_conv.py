# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Convolution, pooling, padding, resizing and sampling against PyTorch: results
and gradients, over both transports."""

import numpy as np
import pytest

import holdfast
import holdfast.nn.functional as F
from holdfast import nn
from torch_peer import assert_close, assert_same_results, leaves, torch

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")

rng = np.random.default_rng(4)


def normal(*shape):
    return rng.standard_normal(shape).astype("float32")


def inside(*shape):
    """Positions for grid_sample, some of them outside."""
    return rng.uniform(-1.3, 1.3, shape).astype("float32")


CASES = [
    ("conv1d", [(2, 4, 9), (6, 2, 3), (6,)], dict(padding=1, stride=2, groups=2)),
    ("conv1d", [(3, 9), (4, 3, 4)], dict(padding="same", dilation=2)),
    ("conv3d", [(2, 3, 4, 5, 6), (4, 3, 2, 3, 2), (4,)], {}),
    (
        "conv3d",
        [(2, 4, 5, 6, 4), (6, 2, 3, 2, 1), (6,)],
        dict(stride=(2, 1, 2), padding=(1, 0, 1), dilation=(1, 2, 1), groups=2),
    ),
    ("conv3d", [(2, 5, 5, 5), (3, 2, 3, 3, 3)], {}),
    ("conv3d", [(1, 2, 4, 4, 4), (3, 2, 2, 3, 2)], dict(padding="same")),
    ("conv_transpose1d", [(2, 3, 5), (3, 4, 3), (4,)], dict(stride=2, padding=1)),
    ("conv_transpose1d", [(3, 5), (3, 4, 3)], dict(stride=2, output_padding=1)),
    ("conv_transpose2d", [(2, 3, 5, 4), (3, 4, 3, 2), (4,)], {}),
    (
        "conv_transpose2d",
        [(2, 4, 4, 3), (4, 3, 3, 3), (6,)],
        dict(stride=2, padding=1, output_padding=1, groups=2, dilation=(1, 2)),
    ),
    (
        "conv_transpose2d",
        [(1, 2, 3, 3), (2, 2, 2, 2), (2,)],
        dict(dilation=3, padding=1, output_padding=(2, 0)),
    ),
    ("conv_transpose3d", [(1, 2, 3, 2, 3), (2, 3, 2, 2, 2), (3,)], dict(stride=2)),
    ("conv_transpose3d", [(2, 3, 2, 3), (2, 3, 2, 2, 2)], {}),
    ("pad", [(2, 3, 5)], dict(pad=(2, 1), mode="reflect")),
    ("pad", [(3, 4, 5)], dict(pad=(2, 1, 0, 3), mode="reflect")),
    ("pad", [(2, 2, 3, 4, 5)], dict(pad=(2, 1, 1, 1, 2, 0), mode="reflect")),
    ("pad", [(2, 3, 5)], dict(pad=(7, 1), mode="replicate")),
    ("pad", [(2, 3, 4, 5)], dict(pad=(2, 1, 0, 6), mode="replicate")),
    ("pad", [(2, 2, 3, 4, 5)], dict(pad=(2, 1, 1, 1, 2, 0), mode="replicate")),
    ("pad", [(2, 3, 5)], dict(pad=(2, 5), mode="circular")),
    ("pad", [(2, 3, 4, 5)], dict(pad=(2, 1, 0, 3), mode="circular")),
    ("pad", [(2, 2, 3, 4, 5)], dict(pad=(2, 1, 1, 1, 2, 0), mode="circular")),
    ("max_pool1d", [(2, 3, 9)], dict(kernel_size=3, stride=2, dilation=2)),
    ("max_pool2d", [(2, 3, 9, 8)], dict(kernel_size=3, stride=2, ceil_mode=True)),
    ("max_pool3d", [(2, 3, 5, 6, 7)], dict(kernel_size=2)),
    (
        "max_pool3d",
        [(3, 5, 6, 7)],
        dict(
            kernel_size=(3, 2, 3),
            stride=(2, 1, 2),
            padding=1,
            dilation=(1, 2, 1),
            ceil_mode=True,
        ),
    ),
    ("avg_pool1d", [(3, 9)], dict(kernel_size=3, stride=2, padding=1, ceil_mode=True)),
    (
        "avg_pool2d",
        [(2, 3, 8, 8)],
        dict(kernel_size=3, padding=1, ceil_mode=True, divisor_override=5),
    ),
    ("avg_pool3d", [(2, 3, 5, 6, 7)], dict(kernel_size=2)),
    (
        "avg_pool3d",
        [(3, 5, 6, 7)],
        dict(
            kernel_size=(3, 2, 3),
            stride=(2, 1, 2),
            padding=1,
            ceil_mode=True,
            count_include_pad=False,
        ),
    ),
    (
        "avg_pool3d",
        [(2, 3, 5, 6, 7)],
        dict(kernel_size=3, padding=1, ceil_mode=True, stride=2),
    ),
    ("avg_pool3d", [(1, 2, 4, 4, 4)], dict(kernel_size=2, divisor_override=3)),
    ("lp_pool1d", [(2, 3, 9)], dict(norm_type=2.0, kernel_size=3)),
    ("lp_pool2d", [(2, 3, 6, 9)], dict(norm_type=2.0, kernel_size=(2, 3), stride=2)),
    ("adaptive_avg_pool1d", [(2, 3, 7)], dict(output_size=3)),
    ("adaptive_avg_pool2d", [(2, 3, 7, 9)], dict(output_size=(3, 4))),
    ("adaptive_avg_pool2d", [(3, 4, 5)], dict(output_size=(7, None))),
    ("adaptive_avg_pool2d", [(2, 3, 4, 5)], dict(output_size=1)),
    ("adaptive_avg_pool3d", [(2, 3, 5, 7, 6)], dict(output_size=(2, 3, 4))),
    ("adaptive_avg_pool3d", [(3, 5, 7, 6)], dict(output_size=(1, 1, 1))),
    ("adaptive_max_pool1d", [(2, 3, 7)], dict(output_size=3)),
    ("adaptive_max_pool2d", [(2, 3, 7, 9)], dict(output_size=(3, 4))),
    ("adaptive_max_pool3d", [(2, 3, 5, 7, 6)], dict(output_size=(2, 3, 4))),
    ("local_response_norm", [(2, 5, 3)], dict(size=3)),
    ("local_response_norm", [(2, 5, 3, 4)], dict(size=2, alpha=0.5, beta=0.6, k=2.0)),
    ("pixel_shuffle", [(2, 8, 3, 4)], dict(upscale_factor=2)),
    ("pixel_shuffle", [(2, 3, 9, 3, 4)], dict(upscale_factor=3)),
    ("pixel_unshuffle", [(2, 3, 4, 6)], dict(downscale_factor=2)),
    ("unfold", [(2, 3, 6, 7)], dict(kernel_size=(2, 3), padding=1, stride=(2, 1))),
    ("unfold", [(3, 6, 7)], dict(kernel_size=2, dilation=(2, 3))),
    ("fold", [(2, 12, 20)], dict(output_size=(5, 6), kernel_size=2)),
    (
        "fold",
        [(12, 12)],
        dict(
            output_size=(5, 6), kernel_size=(3, 2), padding=1, stride=(2, 2), dilation=1
        ),
    ),
]
for _mode, _shape in [
    ("nearest", (2, 3, 7)),
    ("nearest", (2, 3, 4, 7)),
    ("nearest", (2, 2, 3, 4, 5)),
    ("nearest-exact", (2, 3, 4, 7)),
    ("area", (2, 3, 4, 7)),
    ("area", (2, 3, 7)),
    ("linear", (2, 3, 7)),
    ("bilinear", (2, 3, 4, 7)),
    ("bicubic", (2, 3, 4, 7)),
    ("trilinear", (1, 2, 3, 4, 5)),
]:
    for _size in (
        dict(scale_factor=2.0),
        dict(scale_factor=1.7),
        dict(scale_factor=0.6),
        dict(scale_factor=0.6, recompute_scale_factor=True),
        dict(size=5),
        dict(size=1),
    ):
        CASES.append(("interpolate", [_shape], dict(mode=_mode, **_size)))
        if "linear" in _mode or _mode == "bicubic":
            CASES.append(
                (
                    "interpolate",
                    [_shape],
                    dict(mode=_mode, align_corners=True, **_size),
                )
            )
for _mode in ("bilinear", "bicubic"):
    for _size in (dict(scale_factor=0.4), dict(size=(3, 20))):
        CASES.append(
            ("interpolate", [(2, 3, 9, 11)], dict(mode=_mode, antialias=True, **_size))
        )


@pytest.mark.parametrize(
    "name,shapes,options", CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_function(name, shapes, options):
    ours, theirs = leaves([normal(*shape) for shape in shapes])
    assert_same_results(
        getattr(F, name)(*ours, **options),
        getattr(torch.nn.functional, name)(*theirs, **options),
        ours,
        theirs,
        rtol=1e-4,
        atol=2e-5,
    )


@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_grid_sample(mode, padding_mode, align_corners):
    options = dict(mode=mode, padding_mode=padding_mode, align_corners=align_corners)
    for image, grid in [
        (normal(2, 3, 5, 4), inside(2, 3, 6, 2)),
        (normal(2, 2, 3, 4, 5), inside(2, 2, 3, 4, 3)),
    ]:
        if image.ndim == 5 and mode == "bicubic":
            continue
        ours, theirs = leaves([image, grid])
        assert_same_results(
            F.grid_sample(*ours, **options),
            torch.nn.functional.grid_sample(*theirs, **options),
            ours,
            theirs if mode != "nearest" else theirs[:1],
            rtol=1e-3,
            atol=1e-4,
        )


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample_with_and_without_gradient_agree(mode, padding_mode, align_corners):
    """Two ways to compute it; also at positions that are no numbers or far away."""
    options = dict(mode=mode, padding_mode=padding_mode, align_corners=align_corners)
    for image, grid in [
        (normal(2, 3, 5, 4), 2 * normal(2, 7, 130, 2)),
        (normal(2, 2, 3, 1, 5), 2 * normal(2, 2, 3, 4, 3)),
    ]:
        grid.reshape(-1)[:6] = [np.nan, np.inf, -np.inf, 1e20, -1e20, 0]
        plain, wanted = holdfast.tensor(grid), holdfast.tensor(grid).requires_grad_()
        np.testing.assert_allclose(
            F.grid_sample(holdfast.tensor(image), plain, **options).numpy(),
            F.grid_sample(holdfast.tensor(image), wanted, **options).detach().numpy(),
            rtol=1e-4,
            atol=1e-5,
        )


@pytest.mark.parametrize("align_corners", [False, True])
def test_affine_grid(align_corners):
    for shape, size in [((2, 2, 3), (2, 3, 4, 5)), ((2, 3, 4), (2, 3, 4, 1, 5))]:
        ours, theirs = leaves([normal(*shape)])
        assert_same_results(
            F.affine_grid(ours[0], size, align_corners),
            torch.nn.functional.affine_grid(theirs[0], size, align_corners),
            ours,
            theirs,
        )


POOLS = [
    ("max_pool1d", (2, 3, 9), dict(kernel_size=3, stride=2, padding=1)),
    ("max_pool2d", (3, 8, 9), dict(kernel_size=3, stride=2, padding=1)),
    ("max_pool3d", (2, 3, 5, 6, 7), dict(kernel_size=3, stride=2, padding=1)),
    ("adaptive_max_pool1d", (3, 9), dict(output_size=4)),
    ("adaptive_max_pool2d", (2, 3, 8, 9), dict(output_size=(3, 5))),
    ("adaptive_max_pool3d", (3, 5, 6, 7), dict(output_size=(2, 4, 3))),
]


@pytest.mark.parametrize("name,shape,options", POOLS, ids=[p[0] for p in POOLS])
def test_indices(name, shape, options):
    array = np.round(normal(*shape))  # with equal elements
    if array.ndim > 2:
        array[0, 0, 0] = np.nan
    ours, theirs = leaves([array])
    our_values, our_indices = getattr(F, name)(*ours, **options, return_indices=True)
    values, indices = getattr(torch.nn.functional, name)(
        *theirs, **options, return_indices=True
    )
    assert_close(our_values, values)
    assert_close(our_indices, indices)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_unpool(axes):
    array = normal(2, 3, *(6, 7, 8)[:axes])
    options = dict(kernel_size=3, stride=2, padding=1)
    results = []
    for f, x in zip((F, torch.nn.functional), leaves([array])):
        pooled, at = getattr(f, f"max_pool{axes}d")(
            x[0], **options, return_indices=True
        )
        unpool = getattr(f, f"max_unpool{axes}d")
        y = unpool(pooled, at, **options, output_size=array.shape[2:])
        (y * y).sum().backward()
        results.append((y, x[0].grad))
    for our, their in zip(*results):
        assert_close(our, their)


@pytest.mark.parametrize("axes", [2, 3])
def test_fractional_max_pool(axes):
    name = f"fractional_max_pool{axes}d"
    array = normal(2, 3, *(9, 8, 7)[:axes])
    samples = rng.uniform(0, 1, (2, 3, axes)).astype("float32")
    for options in (dict(output_size=4), dict(output_ratio=0.5)):
        ours, theirs = leaves([array])
        our_values, our_at = getattr(F, name)(
            ours[0],
            2,
            return_indices=True,
            _random_samples=holdfast.tensor(samples),
            **options,
        )
        values, at = getattr(torch.nn.functional, name)(
            theirs[0],
            2,
            return_indices=True,
            _random_samples=torch.from_numpy(samples),
            **options,
        )
        assert_close(our_at, at)
        assert_same_results(our_values, values, ours, theirs)
    layer = getattr(nn, f"FractionalMaxPool{axes}d")(2, output_ratio=0.5)
    assert layer(ours[0]).shape == values.shape


def test_names_outside_of_nn():
    for name in ("conv1d", "conv_transpose3d", "max_pool3d", "pixel_shuffle"):
        assert getattr(holdfast, name) is getattr(F, name)


def test_channel_shuffle():
    x = np.arange(12.0).reshape(1, 6, 2, 1)
    got = F.channel_shuffle(holdfast.tensor(x), 2).numpy()
    assert got[0, :, 0, 0].tolist() == [0.0, 6.0, 2.0, 8.0, 4.0, 10.0]


def test_nearest_of_bytes():
    x = np.arange(12, dtype="uint8").reshape(1, 1, 3, 4)
    ours = F.interpolate(holdfast.tensor(x), scale_factor=(1.5, 2))
    theirs = torch.nn.functional.interpolate(torch.from_numpy(x), scale_factor=(1.5, 2))
    assert_close(ours, theirs)


def test_second_order_through_everything():
    x = holdfast.tensor(normal(1, 2, 6, 6).astype("float64"), requires_grad=True)
    y = F.unfold(F.adaptive_max_pool2d(F.pad(x, (1, 1, 1, 1), "reflect"), 4), 2)
    (g,) = holdfast.autograd.grad((y**3).sum(), [x], create_graph=True)
    (gg,) = holdfast.autograd.grad((g * g).sum(), [x])
    assert gg.shape == x.shape and gg.abs().sum().item() > 0


def ones(*shape):
    return holdfast.ones(*shape)


@pytest.mark.parametrize(
    "call,error,text",
    [
        (lambda: F.conv3d(ones(1, 2, 3, 3), ones(1, 1, 2, 2)), RuntimeError, "conv3d"),
        (
            lambda: F.conv3d(ones(1, 3, 3, 3, 3), ones(4, 2, 2, 2, 2)),
            RuntimeError,
            r"to have 2\*1 channels, but got 3 channels",
        ),
        (
            lambda: F.conv3d(ones(1, 2, 3, 3, 3), ones(4, 2, 4, 4, 4)),
            RuntimeError,
            r"\(3 x 3 x 3\). Kernel size: \(4 x 4 x 4\)",
        ),
        (
            lambda: F.conv_transpose2d(ones(1, 3, 4, 4), ones(2, 1, 3, 3)),
            RuntimeError,
            "to have 2 channels, but got 3 channels",
        ),
        (
            lambda: F.conv_transpose2d(
                ones(1, 2, 4, 4), ones(2, 1, 3, 3), output_padding=1
            ),
            RuntimeError,
            "output padding must be smaller",
        ),
        (
            lambda: F.conv_transpose1d(ones(1, 2, 1), ones(2, 1, 1), padding=1),
            RuntimeError,
            "Output size is too small",
        ),
        (
            lambda: nn.ConvTranspose2d(1, 1, 3, padding_mode="circular"),
            ValueError,
            'Only "zeros" padding mode',
        ),
        (
            lambda: F.pad(ones(1, 2, 4), (4, 0), "reflect"),
            RuntimeError,
            "Padding size should be less",
        ),
        (
            lambda: F.pad(ones(1, 2, 4), (5, 0), "circular"),
            RuntimeError,
            "wrapping around more than once",
        ),
        (lambda: F.pad(ones(4), (1, 1), "reflect"), NotImplementedError, "Only 2D"),
        (lambda: F.pad(ones(4), (1, 1), "mirror"), NotImplementedError, "mirror"),
        (
            lambda: F.max_pool3d(ones(2, 3, 3, 3), 4),
            RuntimeError,
            "Output size is too small",
        ),
        (lambda: F.max_pool3d(ones(3, 3), 2), RuntimeError, "Expected 4D or 5D"),
        (
            lambda: F.avg_pool3d(ones(1, 1, 4, 4, 4), 2, divisor_override=0),
            RuntimeError,
            "divisor must be not zero",
        ),
        (
            lambda: F.adaptive_avg_pool2d(ones(1, 1, 4, 4), (0, 2)),
            RuntimeError,
            "adaptive_avg_pool2d",
        ),
        (
            lambda: F.max_unpool2d(
                ones(1, 1, 2, 2),
                holdfast.zeros(1, 1, 2, 2).long(),
                2,
                output_size=(9, 4),
            ),
            ValueError,
            "invalid output_size",
        ),
        (
            lambda: F.max_unpool2d(
                ones(1, 1, 1, 1), holdfast.full((1, 1, 1, 1), 4), 2
            ).numpy(),
            RuntimeError,
            "4",
        ),
        (
            lambda: F.interpolate(ones(1, 1, 4), scale_factor=2, mode="bilinear"),
            NotImplementedError,
            "Got 3D input, but bilinear mode needs 4D input",
        ),
        (
            lambda: F.interpolate(ones(1, 1, 4), 3, align_corners=True),
            ValueError,
            "align_corners option can only",
        ),
        (lambda: F.interpolate(ones(1, 1, 4), 3, 2.0), ValueError, "only one of size"),
        (lambda: F.interpolate(ones(1, 1, 4)), ValueError, "either size or"),
        (lambda: F.interpolate(ones(1, 1, 4), 0), RuntimeError, "greater than 0"),
        (
            lambda: F.grid_sample(ones(1, 1, 4, 4), ones(2, 3, 3, 2)),
            RuntimeError,
            "same batch size",
        ),
        (
            lambda: F.grid_sample(ones(1, 1, 4, 4), ones(1, 3, 3, 2), "cubic"),
            ValueError,
            "expected mode to be",
        ),
        (
            lambda: F.affine_grid(ones(1, 3, 3), (1, 1, 4, 4)),
            ValueError,
            "Expected a batch of 2D affine matrices",
        ),
        (
            lambda: F.pixel_shuffle(ones(1, 3, 4, 4), 2),
            RuntimeError,
            "divisible by the square of upscale_factor",
        ),
        (
            lambda: F.pixel_unshuffle(ones(1, 3, 5, 4), 2),
            RuntimeError,
            "divisible by downscale_factor",
        ),
        (
            lambda: F.channel_shuffle(ones(1, 3, 5, 4), 2),
            RuntimeError,
            "must be divisible",
        ),
        (
            lambda: F.unfold(ones(1, 1, 2, 2), 3),
            RuntimeError,
            "components must be at least one",
        ),
        (
            lambda: F.fold(ones(1, 5, 4), (3, 3), 2),
            RuntimeError,
            "divisible by the product of kernel_size",
        ),
        (
            lambda: F.fold(ones(1, 4, 5), (3, 3), 2),
            RuntimeError,
            "number of sliding blocks 4",
        ),
        (
            lambda: F.local_response_norm(ones(2, 3), 2),
            ValueError,
            "Expected 3D or higher",
        ),
    ],
)
def test_mistakes_raise_at_the_call(call, error, text):
    with pytest.raises(error, match=text):
        call()
