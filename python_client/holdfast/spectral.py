# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Short-time Fourier transforms, and the windows they take."""

import math
import warnings

from holdfast import _C
from holdfast._registry import both, function
from holdfast.shapes import stack

_ops = _C.ops


def _window(name, window_length, periodic, dtype, requires_grad, values, device):
    """`values` at the angles of a window: full turns from 0 to 1 turn."""
    if window_length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got {window_length}"
        )
    dtype = dtype or _C.default_dtype()
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    if window_length == 1:
        window = _ops.full((1,), 1.0, dtype=dtype, device=device)
    else:
        steps = window_length if periodic else window_length - 1
        turns = _ops.arange(0, window_length, 1, dtype=_C.float64, device=device)
        turns = turns / max(steps, 1)
        window = _ops.to(values(turns), dtype)
    return window.requires_grad_() if requires_grad else window


def _cosines(turns, coefficients):
    total = _ops.mul(turns, 0.0) + coefficients[0]
    for k, c in enumerate(coefficients[1:], 1):
        total = total + _ops.cos(turns * (2 * math.pi * k)) * c
    return total


def _device_in(options):
    device = options.pop("device", None)
    for name in options:
        if name not in ("layout", "pin_memory"):
            raise TypeError(f"unexpected keyword argument '{name}'")
    return device


@function
def hann_window(
    window_length, periodic=True, *, dtype=None, requires_grad=False, **options
):
    """(1 - cos(2 pi n / N)) / 2, [window_length]; N one less without periodic."""
    device = _device_in(options)
    return _window(
        "hann_window",
        window_length,
        periodic,
        dtype,
        requires_grad,
        lambda turns: _cosines(turns, (0.5, -0.5)),
        device,
    )


@function
def hamming_window(
    window_length,
    periodic=True,
    alpha=0.54,
    beta=0.46,
    *,
    dtype=None,
    requires_grad=False,
    **options,
):
    """alpha - beta cos(2 pi n / N), [window_length]; N one less without periodic."""
    device = _device_in(options)
    return _window(
        "hamming_window",
        window_length,
        periodic,
        dtype,
        requires_grad,
        lambda turns: _cosines(turns, (alpha, -beta)),
        device,
    )


@function
def blackman_window(
    window_length, periodic=True, *, dtype=None, requires_grad=False, **options
):
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N), [window_length]."""
    device = _device_in(options)
    return _window(
        "blackman_window",
        window_length,
        periodic,
        dtype,
        requires_grad,
        lambda turns: _cosines(turns, (0.42, -0.5, 0.08)),
        device,
    )


@function
def bartlett_window(
    window_length, periodic=True, *, dtype=None, requires_grad=False, **options
):
    """1 - |2 n / N - 1|, [window_length]; N one less without periodic."""
    device = _device_in(options)
    return _window(
        "bartlett_window",
        window_length,
        periodic,
        dtype,
        requires_grad,
        lambda turns: 1 - _ops.abs(turns * 2 - 1),
        device,
    )


@function
def kaiser_window(
    window_length,
    periodic=True,
    beta=12.0,
    *,
    dtype=None,
    requires_grad=False,
    **options,
):
    """I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta), [window_length]."""
    device = _device_in(options)

    def values(turns):
        place = turns * 2 - 1
        root = _ops.sqrt(_ops.clamp(1 - place * place, 0))
        top = _ops.special_function(_ops.full((), beta, dtype=_C.float64), "i0")
        return _ops.special_function(root * beta, "i0") / top

    return _window(
        "kaiser_window", window_length, periodic, dtype, requires_grad, values, device
    )


def _full_window(name, window, win_length, n_fft, dtype):
    """The window [n_fft], padded with zeros on both sides."""
    if not 0 < win_length <= n_fft:
        raise RuntimeError(
            f"{name} expected 0 < win_length <= n_fft, but got win_length={win_length} "
            f"and n_fft={n_fft}"
        )
    if window is None:
        window = _ops.full((win_length,), 1.0, dtype=dtype)
    elif window.dim() != 1 or window.size(0) != win_length:
        raise RuntimeError(
            f"{name} expected a 1D window tensor of size equal to "
            f"win_length={win_length}, but got window with size {list(window.shape)}"
        )
    before = (n_fft - win_length) // 2
    after = n_fft - win_length - before
    return _ops.constant_pad(window, (before, after), 0)


@both
def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
):
    """Fourier transforms of windowed frames of n_fft samples, hop_length apart.

    input [T] or [N, T], real or complex -> [N, F, frames] complex, F = n_fft // 2 + 1
    for a real input unless onesided is False; with return_complex=False pairs
    [..., 2]. center pads n_fft // 2 samples on both sides. (Allen & Rabiner 1977)
    """
    if input.dim() not in (1, 2):
        raise RuntimeError(
            f"stft: expected a 1D or 2D tensor. Got {list(input.shape)}."
        )
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(
            f"stft: expected a tensor of floating point or complex values. "
            f"Got {input.dtype}."
        )
    is_complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        return_complex = is_complex
        if not is_complex:
            warnings.warn(
                "stft with return_complex=False is deprecated; pass "
                "return_complex=True and use view_as_real on the result",
                stacklevel=2,
            )
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    single = input.dim() == 1
    x = _ops.unsqueeze(input, 0) if single else input
    if center:
        from holdfast.nn.functional import pad

        x = pad(_ops.unsqueeze(x, 1), (n_fft // 2, n_fft // 2), mode=pad_mode)
        x = _ops.squeeze(x, 1)
    if not 0 < n_fft <= x.size(1):
        raise RuntimeError(
            f"stft: expected 0 < n_fft <= {x.size(1)}, but got n_fft={n_fft}"
        )
    if hop_length <= 0:
        raise RuntimeError(f"stft: expected hop_length > 0, but got {hop_length}")
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    real = x.dtype if not x.is_complex() else None
    window = _full_window("stft", window, win_length, n_fft, real or _C.float32)
    frames = x.unfold(1, n_fft, hop_length) * window
    from holdfast import fft

    norm = "ortho" if normalized else None
    if is_complex or onesided is False:
        result = fft.fft(frames, norm=norm)
    else:
        result = fft.rfft(frames, norm=norm)
    result = _ops.transpose(result, 1, 2)
    if single:
        result = _ops.squeeze(result, 0)
    return result if return_complex else _ops.view_as_real(result)


@both
def istft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
):
    """The signal of least squared error whose stft() is input [N, F, frames] or
    [F, frames], complex: [N, T] or [T] (Griffin & Lim 1984).

    Every sample must lie under some window (RuntimeError; looking waits for the
    window's values). length cuts or pads the result.
    """
    if not input.is_complex() and input.dim() > 2 and input.size(-1) == 2:
        input = _ops.view_as_complex(input.contiguous())
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from "
            f"stft with return_complex=True. Got {input.dtype}."
        )
    if input.dim() not in (2, 3) or not input.numel():
        raise RuntimeError(
            "istft: expected a tensor [F, frames] or [N, F, frames] with elements. "
            f"Got {list(input.shape)}."
        )
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if not 0 < hop_length <= win_length:
        raise RuntimeError(
            "istft: expected 0 < hop_length <= win_length. "
            f"Got {hop_length} and {win_length}."
        )
    single = input.dim() == 2
    x = _ops.unsqueeze(input, 0) if single else input
    bins, frames = x.size(1), x.size(2)
    if onesided is None:
        onesided = bins != n_fft
    if bins != (n_fft // 2 + 1 if onesided else n_fft):
        raise RuntimeError(
            "istft: expected the frequency dimension (2nd to the last) of the input "
            f"tensor to match n_fft={n_fft} with onesided={onesided}. Got {bins}."
        )
    if return_complex and onesided:
        raise RuntimeError("cannot have onesided input if the result is complex")
    from holdfast import fft

    real = _C.float64 if x.dtype is _C.complex128 else _C.float32
    window = _full_window("istft", window, win_length, n_fft, real)
    norm = "ortho" if normalized else None
    x = _ops.transpose(x, 1, 2)
    if onesided or not return_complex:
        # Of a real signal the second half of the spectrum tells nothing.
        x = fft.irfft(x[..., : n_fft // 2 + 1], n_fft, norm=norm)
    else:
        x = fft.ifft(x, norm=norm)
    start = n_fft // 2 if center else 0
    total = n_fft + hop_length * (frames - 1)
    end = total - start if center else total
    end = end if length is None else start + length
    squares = window.abs() ** 2 if window.is_complex() else window * window
    weight = _overlapped(_ops.expand(squares, (1, frames, n_fft)), hop_length)
    signal = _overlapped(x * window, hop_length)
    weight = _ops.slice(weight, 1, start, min(end, total))
    signal = _ops.slice(signal, 1, start, min(end, total))
    if weight.numel() and not weight.abs().min().item() > 1e-11:
        raise RuntimeError("istft: the windows do not cover every sample")
    signal = signal / weight
    if end > total:
        signal = _ops.constant_pad(signal, (0, end - total), 0)
    return _ops.squeeze(signal, 0) if single else signal


def _overlapped(frames, hop):
    """Frames [N, K, n] added up at distances of hop, [N, n + hop (K - 1)]."""
    if frames.is_complex():
        parts = [_overlapped(part, hop) for part in (frames.real, frames.imag)]
        return _ops.view_as_complex(stack(parts, -1))
    count, size = frames.size(1), frames.size(2)
    columns = _ops.transpose(frames, 1, 2)
    total = size + hop * (count - 1)
    added = _ops.col2im(columns, (1, total), (1, size), (1, 1), (0, 0), (1, hop))
    return added.reshape(frames.size(0), total)
