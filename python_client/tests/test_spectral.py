# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""stft, istft, windows, histogramdd and the median's gradient against PyTorch."""

import numpy as np
import pytest

import holdfast
from torch_peer import assert_close, torch

rng = np.random.default_rng(4)
SIGNAL = rng.standard_normal((2, 100))
TRANSFORMS = [
    {"n_fft": 16},
    {"n_fft": 16, "hop_length": 5, "win_length": 12},
    {"n_fft": 15, "normalized": True},
    {"n_fft": 16, "onesided": False},
    {"n_fft": 16, "pad_mode": "constant", "hop_length": 8},
]


def window_of(lib, options, kind):
    if kind is None:
        return None
    length = options.get("win_length", options["n_fft"])
    return getattr(lib, kind)(length, dtype=lib.float64)


@pytest.mark.parametrize("kind", [None, "hann_window", "hamming_window"])
@pytest.mark.parametrize("options", TRANSFORMS, ids=str)
def test_stft_and_back(options, kind):
    ours, theirs = (
        lib.stft(
            lib.tensor(SIGNAL),
            window=window_of(lib, options, kind),
            return_complex=True,
            **options,
        )
        for lib in (holdfast, torch)
    )
    assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
    options = {k: v for k, v in options.items() if k != "pad_mode"}
    for length in (None, 90):
        ours_back, theirs_back = (
            lib.istft(x, window=window_of(lib, options, kind), length=length, **options)
            for lib, x in ((holdfast, ours), (torch, theirs))
        )
        assert_close(ours_back, theirs_back, rtol=1e-10, atol=1e-12)
        part = SIGNAL[:, : ours_back.shape[1]]
        np.testing.assert_allclose(ours_back.numpy(), part, atol=1e-12)


def test_stft_of_complex_numbers_and_pairs():
    z = SIGNAL[0] + 1j * SIGNAL[1]
    args = {"n_fft": 8, "center": False, "return_complex": True}
    assert_close(
        holdfast.tensor(z).stft(**args), torch.tensor(z).stft(**args), atol=1e-12
    )
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        pairs = holdfast.tensor(SIGNAL).stft(16)
    assert pairs.shape == (2, 9, 26, 2)


def test_stft_gradient():
    x = holdfast.tensor(SIGNAL).requires_grad_()
    y = torch.tensor(SIGNAL).requires_grad_()
    holdfast.stft(x, 16, return_complex=True).abs().sum().backward()
    torch.stft(y, 16, return_complex=True).abs().sum().backward()
    assert_close(x.grad, y.grad, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "call,text",
    [
        (lambda x: x.stft(200, return_complex=True), "Padding size|n_fft"),
        (lambda x: x.stft(16, 0, return_complex=True), "hop_length > 0"),
        (
            lambda x: x.stft(16, win_length=17, return_complex=True),
            "win_length <= n_fft",
        ),
        (
            lambda x: x.stft(16, window=holdfast.ones(3), return_complex=True),
            "window with size",
        ),
        (lambda x: x[0, 0].stft(4, return_complex=True), "1D or 2D"),
        (lambda x: x.istft(16), "complex-valued"),
        (lambda x: x.stft(16, return_complex=True).istft(14), "match n_fft=14"),
        (
            lambda x: x.stft(16, return_complex=True).istft(
                16, window=holdfast.zeros(16)
            ),
            "do not cover",
        ),
    ],
)
def test_transform_mistakes(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(holdfast.tensor(SIGNAL))


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_windows(name):
    for length in (0, 1, 2, 7, 8):
        for periodic in (True, False):
            ours, theirs = (
                getattr(lib, name + "_window")(length, periodic)
                for lib in (holdfast, torch)
            )
            assert_close(ours, theirs, atol=1e-6)
    with pytest.raises(RuntimeError, match="non-negative window_length, got -1"):
        getattr(holdfast, name + "_window")(-1)


POINTS = rng.uniform(0, 1, (50, 2))
WEIGHTS = rng.uniform(0, 1, 50)


@pytest.mark.parametrize(
    "options",
    [
        {"bins": 4},
        {"bins": [3, 5], "range": [0, 1, 0.2, 0.8]},
        {"bins": [3, 5], "density": True},
        {"bins": 4, "weight": WEIGHTS},
        {"bins": [np.array([0, 0.3, 1.0]), np.array([0.1, 0.5, 0.9])]},
    ],
    ids=lambda o: "-".join(o),
)
def test_histogramdd(options):
    results = []
    for lib in (holdfast, torch):
        own = dict(options)
        if isinstance(own["bins"], list) and isinstance(own["bins"][0], np.ndarray):
            own["bins"] = [lib.tensor(b) for b in own["bins"]]
        if "weight" in own:
            own["weight"] = lib.tensor(own["weight"])
        results.append(lib.histogramdd(lib.tensor(POINTS), **own))
    ours, theirs = results
    assert_close(ours.hist, theirs.hist)
    for edges, expected in zip(ours.bin_edges, theirs.bin_edges):
        assert_close(edges, expected)


def test_histograms_refuse_nan():
    x = holdfast.tensor([1.0, float("nan")])
    for call in (holdfast.histc, lambda x: holdfast.histogram(x, 3)[0]):
        with pytest.raises(RuntimeError, match=r"range of \[nan, nan\] is not finite"):
            call(x).tolist()
    assert holdfast.histc(x, 2, 0, 2).tolist() == [0.0, 1.0]


def test_median_shares_its_gradient():
    for values in ([3.0, 1, 2, 2, 5, 2], [1.0, 2], [4.0], [-np.inf, -np.inf, 3]):
        for name in ("median", "nanmedian"):
            grads = []
            for lib in (holdfast, torch):
                x = lib.tensor(values, requires_grad=True)
                (getattr(lib, name)(x) * 3).backward()
                grads.append(x.grad)
            if name == "median" or np.isfinite(values).all():
                assert_close(*grads)


def test_convolutions_by_their_top_names():
    x, w = holdfast.ones(1, 1, 4, 4), holdfast.ones(1, 1, 3, 3)
    assert holdfast.conv2d(x, w, padding="same").shape == (1, 1, 4, 4)
    assert holdfast.conv2d(x[0], w).shape == (1, 2, 2)
    assert holdfast.conv3d(x[None], w[None], padding="valid").shape == (1, 1, 1, 2, 2)
