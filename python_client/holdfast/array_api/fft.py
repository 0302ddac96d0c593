# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The standard's extension of discrete Fourier transforms."""

import holdfast

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def _along_axis(name):
    transform = getattr(holdfast.fft, name)

    def along_axis(x, /, *, n=None, axis=-1, norm="backward"):
        return transform(x, n, axis, norm)

    along_axis.__name__ = along_axis.__qualname__ = name
    along_axis.__doc__ = f"holdfast.fft.{name}() along axis, of n elements."
    return along_axis


def _along_axes(name):
    transform = getattr(holdfast.fft, name)

    def along_axes(x, /, *, s=None, axes=None, norm="backward"):
        return transform(x, s, axes, norm)

    along_axes.__name__ = along_axes.__qualname__ = name
    along_axes.__doc__ = f"holdfast.fft.{name}() along axes, of s elements each."
    return along_axes


fft = _along_axis("fft")
ifft = _along_axis("ifft")
rfft = _along_axis("rfft")
irfft = _along_axis("irfft")
hfft = _along_axis("hfft")
ihfft = _along_axis("ihfft")
fftn = _along_axes("fftn")
ifftn = _along_axes("ifftn")
rfftn = _along_axes("rfftn")
irfftn = _along_axes("irfftn")


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """Frequencies of fft()'s results, for samples at distance d."""
    return holdfast.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """Frequencies of rfft()'s results, for samples at distance d."""
    return holdfast.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x, /, *, axes=None):
    """The zero frequency moved to the centre of the axes."""
    return holdfast.fft.fftshift(x, axes)


def ifftshift(x, /, *, axes=None):
    """Inverse of fftshift()."""
    return holdfast.fft.ifftshift(x, axes)
