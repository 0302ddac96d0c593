# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms: errors, types, properties. Values and gradients:
tests/op_cases_fft.py."""

import numpy as np
import pytest


def test_argument_errors(torch):
    x = torch.ones(3, 4)
    fft = torch.fft
    with pytest.raises(RuntimeError, match=r"Invalid number of data points \(0\)"):
        fft.fft(x, 0)
    with pytest.raises(IndexError, match=r"range of \[-2, 1\], but got 2"):
        fft.fft(x, dim=2)
    with pytest.raises(RuntimeError, match="Invalid normalization mode: 'none'"):
        fft.rfft(x, norm="none")
    with pytest.raises(RuntimeError, match="dims must be unique"):
        fft.fftn(x, dim=(0, 0))
    with pytest.raises(RuntimeError, match="must have the same length"):
        fft.fftn(x, (2, 2), (0,))
    with pytest.raises(RuntimeError, match="3 values but input tensor only has 2"):
        fft.fftn(x, (2, 2, 2))
    with pytest.raises(RuntimeError, match="rfft expects a real input"):
        fft.rfft(fft.fft(x))
    with pytest.raises(RuntimeError, match="Unsupported dtype"):
        fft.fft(x.half())
    with pytest.raises(RuntimeError, match=r"Invalid number of data points \(0\)"):
        fft.irfft(torch.ones(3, 1))
    with pytest.raises(AttributeError, match="torch.fft.dct"):
        fft.dct


def test_types(torch):
    for dtype, result in (
        (torch.float32, torch.complex64),
        (torch.float64, torch.complex128),
        (torch.int64, torch.complex64),
    ):
        x = torch.ones(4, dtype=dtype)
        assert torch.fft.fft(x).dtype == result
        assert torch.fft.rfft(x).dtype == result
        assert torch.fft.irfft(torch.fft.rfft(x)).dtype in (dtype, torch.float32)


@pytest.mark.parametrize("shape", [(1000,), (7, 48, 5), (64, 100), (1, 2, 3, 4)])
def test_there_and_back(torch, shape):
    x = torch.rand(shape, dtype=torch.float64)
    size = shape[-1]
    for norm in (None, "ortho", "forward"):
        there = torch.fft.fftn(x, norm=norm)
        back = torch.view_as_real(torch.fft.ifftn(there, norm=norm))[..., 0]
        np.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-12)
        half = torch.fft.rfft(x, norm=norm)
        back = torch.fft.irfft(half, size, norm=norm)
        np.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-12)


def test_hostile_attributes(torch):
    x = torch.view_as_complex(torch.ones(3, 2))
    ops = torch._C.ops
    with pytest.raises(RuntimeError, match="at least one dimension"):
        ops.fft_c2c(x, [], 1.0, True)
    with pytest.raises(RuntimeError, match="appears multiple times|unique|repeated"):
        ops.fft_c2c(x, [0, -1], 1.0, True)
    for size in (-1, 0, 3, 6, 2**62):
        with pytest.raises(RuntimeError, match="Invalid number of data points"):
            ops.fft_c2r(x, [0], 1.0, size)
    with pytest.raises(RuntimeError):
        ops.fft_r2c(x, [0], 1.0)
    with pytest.raises(RuntimeError):
        ops.fft_c2c(torch.ones(3), [0], 1.0, True)


def test_frequencies_and_shifts(torch):
    f = torch.fft.fftfreq(5, 0.5)
    assert torch.fft.fftshift(f).tolist() == sorted(f.tolist())
    assert torch.fft.ifftshift(torch.fft.fftshift(f)).tolist() == f.tolist()
