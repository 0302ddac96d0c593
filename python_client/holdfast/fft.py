# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.fft: discrete Fourier transforms, by FFTW on the daemon's machine.

n (s) pads with zeros or trims the transformed dimensions first. norm says
where the factor 1/n goes: "backward" (default) to the inverse transform,
"forward" to the other, "ortho" its root to both. Integers are transformed as
float32, real numbers as complex ones. The last dimension transformed is the
one that real transforms halve.
"""

import math

from holdfast import _C
from holdfast._registry import accepts_out
from holdfast.creation import arange
from holdfast.missing import module_getattr

_ops = _C.ops
_COMPLEX = {_C.float32: _C.complex64, _C.float64: _C.complex128}

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def _floating(input):
    """Integers as float32; half precision has no transforms."""
    if input.is_floating_point() or input.is_complex():
        if input.dtype not in (*_COMPLEX, *_COMPLEX.values()):
            raise RuntimeError(f"Unsupported dtype {input.dtype}")
        return input
    return _ops.to(input, _C.float32)


def _complex(input):
    input = _floating(input)
    return _ops.to(input, _COMPLEX.get(input.dtype, input.dtype))


def _real(input, name):
    if input.is_complex():
        raise RuntimeError(f"{name} expects a real input tensor, but got {input.dtype}")
    return _floating(input)


def _scale(sizes, norm, inverse):
    if norm not in (None, "backward", "forward", "ortho"):
        raise RuntimeError(f"Invalid normalization mode: {norm!r}")
    n = math.prod(sizes)
    if norm == "ortho":
        return 1.0 / math.sqrt(n) if n else 1.0
    return 1.0 / n if n and inverse == (norm != "forward") else 1.0


def _wrap(dim, rank):
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(rank, 1)}, "
            f"{max(rank, 1) - 1}], but got {dim})"
        )
    return dim % max(rank, 1)


def _dims(input, s, dim):
    """The transformed dimensions, and the size to give each (None: its own)."""
    rank = input.dim()
    s = (s,) if isinstance(s, int) else s
    dim = (dim,) if isinstance(dim, int) else dim
    if dim is None:
        count = rank if s is None else len(s)
        if count > rank:
            raise RuntimeError(
                f"Got shape with {count} values but input tensor only has {rank} "
                "dimensions."
            )
        dims = tuple(range(rank - count, rank))
    else:
        dims = tuple(_wrap(d, rank) for d in dim)
        if s is not None and len(s) != len(dims):
            raise RuntimeError(
                "When given, dim and shape arguments must have the same length"
            )
    if len(set(dims)) != len(dims):
        raise RuntimeError("FFT dims must be unique")
    if rank == 0 and dims:
        raise RuntimeError("FFT needs at least one dimension")
    sizes = [None] * len(dims) if s is None else [None if n == -1 else n for n in s]
    for n in sizes:
        if n is not None and n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return dims, sizes


def _resized(input, dims, sizes):
    """input with the given sizes along dims: zeros appended, or cut off."""
    pad = [0] * (2 * input.dim())
    for d, n in zip(dims, sizes):
        if n is None or n == input.size(d):
            continue
        if n < input.size(d):
            input = _ops.slice(input, d, 0, n)
        else:
            pad[2 * (input.dim() - 1 - d) + 1] = n - input.size(d)
    return _ops.constant_pad(input, pad) if any(pad) else input


def _c2c(input, s, dim, norm, forward):
    input = _complex(input)
    dims, sizes = _dims(input, s, dim)
    input = _resized(input, dims, sizes)
    if not dims:
        return _ops.clone(input)
    scale = _scale([input.size(d) for d in dims], norm, not forward)
    return _ops.fft_c2c(input, dims, scale, forward)


def _r2c(input, s, dim, norm, inverse):
    dims, sizes = _dims(input, s, dim)
    if not dims:
        raise RuntimeError("rfftn must transform at least one axis")
    input = _resized(input, dims, sizes)
    scale = _scale([input.size(d) for d in dims], norm, inverse)
    return _ops.fft_r2c(input, dims, scale)


def _c2r(input, s, dim, norm, inverse):
    dims, sizes = _dims(input, s, dim)
    if not dims:
        raise RuntimeError("irfftn must transform at least one axis")
    last = sizes[-1]
    if last is None:
        last = 2 * (input.size(dims[-1]) - 1)
    if last < 1:
        raise RuntimeError(f"Invalid number of data points ({last}) specified")
    input = _resized(input, dims, [*sizes[:-1], last // 2 + 1])
    scale = _scale([input.size(d) for d in dims[:-1]] + [last], norm, inverse)
    return _ops.fft_c2r(input, dims, scale, last)


def _one(n):
    return None if n is None else (n,)


@accepts_out
def fft(input, n=None, dim=-1, norm=None):
    """Transform along dim."""
    return _c2c(input, _one(n), (dim,), norm, True)


@accepts_out
def ifft(input, n=None, dim=-1, norm=None):
    """Inverse of fft()."""
    return _c2c(input, _one(n), (dim,), norm, False)


@accepts_out
def fft2(input, s=None, dim=(-2, -1), norm=None):
    """fftn() over two dimensions."""
    return _c2c(input, s, dim, norm, True)


@accepts_out
def ifft2(input, s=None, dim=(-2, -1), norm=None):
    """Inverse of fft2()."""
    return _c2c(input, s, dim, norm, False)


@accepts_out
def fftn(input, s=None, dim=None, norm=None):
    """Transform over dim (all if None; the last ones if s is given)."""
    return _c2c(input, s, dim, norm, True)


@accepts_out
def ifftn(input, s=None, dim=None, norm=None):
    """Inverse of fftn()."""
    return _c2c(input, s, dim, norm, False)


@accepts_out
def rfft(input, n=None, dim=-1, norm=None):
    """fft() of real numbers: the first n // 2 + 1 results; the others are
    their conjugates."""
    return _r2c(_real(input, "rfft"), _one(n), (dim,), norm, False)


@accepts_out
def irfft(input, n=None, dim=-1, norm=None):
    """Inverse of rfft(), with n (default 2 (size - 1)) real results."""
    return _c2r(_complex(input), _one(n), (dim,), norm, True)


@accepts_out
def rfft2(input, s=None, dim=(-2, -1), norm=None):
    """rfftn() over two dimensions."""
    return _r2c(_real(input, "rfft2"), s, dim, norm, False)


@accepts_out
def irfft2(input, s=None, dim=(-2, -1), norm=None):
    """Inverse of rfft2()."""
    return _c2r(_complex(input), s, dim, norm, True)


@accepts_out
def rfftn(input, s=None, dim=None, norm=None):
    """fftn() of real numbers; half of the last dimension."""
    return _r2c(_real(input, "rfftn"), s, dim, norm, False)


@accepts_out
def irfftn(input, s=None, dim=None, norm=None):
    """Inverse of rfftn()."""
    return _c2r(_complex(input), s, dim, norm, True)


@accepts_out
def hfft(input, n=None, dim=-1, norm=None):
    """Transform of a signal that is Hermitian in time, given half of it: real."""
    return hfftn(input, _one(n), (dim,), norm)


@accepts_out
def ihfft(input, n=None, dim=-1, norm=None):
    """Inverse of hfft(): half of a Hermitian signal."""
    return ihfftn(input, _one(n), (dim,), norm)


@accepts_out
def hfft2(input, s=None, dim=(-2, -1), norm=None):
    """hfftn() over two dimensions."""
    return hfftn(input, s, dim, norm)


@accepts_out
def ihfft2(input, s=None, dim=(-2, -1), norm=None):
    """Inverse of hfft2()."""
    return ihfftn(input, s, dim, norm)


@accepts_out
def hfftn(input, s=None, dim=None, norm=None):
    """hfft() over the last dimension, fft() over the others."""
    return _c2r(_ops.conj(_complex(input)), s, dim, norm, False)


@accepts_out
def ihfftn(input, s=None, dim=None, norm=None):
    """Inverse of hfftn()."""
    return _ops.conj(_r2c(_real(input, "ihfftn"), s, dim, norm, True))


@accepts_out
def fftfreq(n, d=1.0, *, dtype=None, requires_grad=False, **options):
    """Frequencies of fft()'s results, for samples at distance d."""
    first = -(n // 2)
    steps = arange(first, n + first, dtype=dtype or _C.default_dtype(), **options)
    return (ifftshift(steps) / (n * d)).requires_grad_(requires_grad)


@accepts_out
def rfftfreq(n, d=1.0, *, dtype=None, requires_grad=False, **options):
    """Frequencies of rfft()'s results, for samples at distance d."""
    steps = arange(n // 2 + 1, dtype=dtype or _C.default_dtype(), **options)
    return (steps / (n * d)).requires_grad_(requires_grad)


def _rolled(input, dim, shift):
    rank = input.dim()
    if dim is None:
        dim = range(rank)
    for d in (dim,) if isinstance(dim, int) else dim:
        d = _wrap(d, rank)
        n = input.size(d)
        start = shift(n)
        if n > 1:
            parts = [_ops.slice(input, d, start, n), _ops.slice(input, d, 0, start)]
            input = _ops.cat(parts, d)
    return input


def fftshift(input, dim=None):
    """The zero frequency moved to the centre of dim (all if None)."""
    return _rolled(input, dim, lambda n: n - n // 2)


def ifftshift(input, dim=None):
    """Inverse of fftshift()."""
    return _rolled(input, dim, lambda n: n // 2)


__getattr__ = module_getattr("torch.fft")
