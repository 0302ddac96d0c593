# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.signal.windows: windows [M], symmetric unless sym=False, for a period."""

import math

import holdfast
from holdfast.missing import module_getattr


def _window(name, M, sym, options, values):
    """`values` of 0, 1, ..., M - 1 and of the last place of a symmetric window."""
    options.pop("layout", None)
    dtype = options.pop("dtype", None) or holdfast.get_default_dtype()
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if not dtype.is_floating_point:
        raise ValueError(f"{name} expects floating point dtypes, got: {dtype}")
    requires_grad = options.pop("requires_grad", False)
    n = holdfast.arange(M, dtype=holdfast.float64, **options)
    last = M - 1 if sym else M
    window = holdfast.ones_like(n) if M == 1 else values(n, last)
    return window.to(dtype).requires_grad_(requires_grad)


def general_cosine(M, *, a, sym=True, **options):
    """Sum of (-1)^k a[k] cos(2 pi k n / N)."""
    if not a:
        raise ValueError("Coefficients cannot be empty")

    def values(n, last):
        return sum(
            (-1) ** k * c * holdfast.cos(2 * math.pi * k * n / last)
            for k, c in enumerate(a)
        )

    return _window("general_cosine", M, sym, options, values)


def general_hamming(M, *, alpha=0.54, sym=True, **options):
    """alpha - (1 - alpha) cos(2 pi n / N)."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M, *, sym=True, **options):
    """general_hamming() with alpha 0.54."""
    return general_hamming(M, sym=sym, **options)


def hann(M, *, sym=True, **options):
    """general_hamming() with alpha 0.5."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M, *, sym=True, **options):
    """general_cosine() of 0.42, 0.5, 0.08."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M, *, sym=True, **options):
    """general_cosine() of Nuttall's four coefficients."""
    a = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=a, sym=sym, **options)


def bartlett(M, *, sym=True, **options):
    """A triangle: 1 - |2 n / N - 1|."""
    return _window(
        "bartlett", M, sym, options, lambda n, last: 1 - (2 * n / last - 1).abs()
    )


def cosine(M, *, sym=True, **options):
    """sin(pi (n + 0.5) / M), half a turn."""

    def values(n, last):
        return holdfast.sin(math.pi * (n + 0.5) / (last + 1))

    return _window("cosine", M, sym, options, values)


def exponential(M, *, center=None, tau=1.0, sym=True, **options):
    """exp(-|n - center| / tau), by default about the middle."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def values(n, last):
        middle = last / 2 if center is None else center
        return holdfast.exp(-(n - middle).abs() / tau)

    return _window("exponential", M, sym, options, values)


def gaussian(M, *, std=1.0, sym=True, **options):
    """exp(-((n - middle) / std)^2 / 2)."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def values(n, last):
        return holdfast.exp(-(((n - last / 2) / std) ** 2) / 2)

    return _window("gaussian", M, sym, options, values)


def kaiser(M, *, beta=12.0, sym=True, **options):
    """I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta)."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def values(n, last):
        inside = (1 - (2 * n / last - 1) ** 2).clamp(min=0)
        whole = holdfast.tensor(beta, dtype=holdfast.float64)
        return holdfast.i0(beta * inside.sqrt()) / holdfast.i0(whole)

    return _window("kaiser", M, sym, options, values)


__getattr__ = module_getattr("torch.signal.windows")
