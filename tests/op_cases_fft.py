# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of Fourier transforms; op_cases.py says what a row is.

Gradients are checked on real inputs and results: `parts` makes complex numbers
of pairs, and pairs of complex numbers.
"""

import numpy as np
from op_cases import case


def parts(hf, x):
    """Complex numbers as real ones with a last dimension of 2."""
    return hf.view_as_real(x) if x.is_complex() else x


def np_parts(x):
    return np.stack([x.real, x.imag], -1) if np.iscomplexobj(x) else x


def np_complex(x):
    return x[..., 0] + 1j * x[..., 1]


def both(op, name, *shapes_and_arguments):
    """One row per shape and arguments, with the last dimension as parts where
    the transform takes complex numbers."""
    takes_real = name.lstrip("i").startswith("r") and not name.startswith("ir")
    takes_real = takes_real or name.startswith("ihfft")
    for shape, arguments in shapes_and_arguments:
        renamed = {{"dim": "axis"}.get(k, k): v for k, v in arguments.items()}
        if name.rstrip("2n") != name:
            renamed = {{"axis": "axes"}.get(k, k): v for k, v in renamed.items()}

        def ours(hf, x, name=name, k=arguments, real=takes_real):
            f = getattr(hf.fft, name)
            return parts(hf, f(x if real else hf.view_as_complex(x), **k))

        def reference(x, name=name, k=renamed, real=takes_real):
            return np_parts(getattr(np.fft, name)(x if real else np_complex(x), **k))

        text = "".join(f" {k}={v}" for k, v in arguments.items())
        case(
            op,
            ours,
            reference,
            shape if takes_real else shape + (2,),
            label=f" {name}{text}",
        )


lines = [
    ((4,), {}),
    ((5,), {}),
    ((2,), {}),
    ((2, 3, 4), {"dim": 1}),
    ((2, 6), {"norm": "ortho"}),
    ((2, 6), {"norm": "forward"}),
    ((2, 6), {"n": 4}),
    ((2, 6), {"n": 9, "dim": -1}),
    ((6, 2), {"n": 3, "dim": 0, "norm": "backward"}),
]
planes = [
    ((3, 4), {}),
    ((2, 3, 4), {"norm": "ortho"}),
    ((2, 3, 4), {"s": (4, 3)}),
]
for op, name in [
    ("fft_c2c", "fft"),
    ("fft_c2c", "ifft"),
    ("fft_r2c", "rfft"),
    ("fft_c2r", "irfft"),
    ("fft.hfft", "hfft"),
    ("fft.ihfft", "ihfft"),
]:
    both(op, name, *lines)
for name in ("fft2", "ifft2", "rfft2", "irfft2"):
    both(f"fft.{name}", name, *planes, ((3, 4, 3), {"dim": (0, 1)}))
for name in ("fftn", "ifftn", "rfftn", "irfftn"):
    both(
        f"fft.{name}",
        name,
        *planes,
        ((2, 3, 4), {}),
        ((2, 3, 4), {"dim": (2, 0)}),
        ((5,), {}),
    )
both("fft_r2c", "rfft", ((1,), {}))
both("fft_c2c", "fft", ((1,), {}))
# As long as several pieces of work, and as prime numbers.
for shape in [(3, 10007), (70, 200), (9001, 2)]:
    for dim in (0, 1):
        for name in ("fft", "rfft"):
            case(
                "fft_c2c" if name == "fft" else "fft_r2c",
                lambda hf, x, f=name, d=dim: parts(hf, getattr(hf.fft, f)(x, dim=d)),
                lambda x, f=name, d=dim: np_parts(getattr(np.fft, f)(x, axis=d)),
                np.random.default_rng(1).uniform(-0.1, 0.1, shape),
                grad=(),
                label=f" {name} dim={dim}",
            )
case(
    "fft_c2c",
    lambda hf, x: parts(hf, hf.fft.fft(x)),
    lambda x: np_parts(np.fft.fft(x)),
    (2, 5),
    label=" of real numbers",
)
case(
    "fft_c2c",
    lambda hf, x: parts(hf, hf.fft.fft(hf.view_as_complex(x).t()[::2], dim=0)),
    lambda x: np_parts(np.fft.fft(np_complex(x).T[::2], axis=0)),
    (3, 5, 2),
    label=" strided",
)
case(
    "fft_r2c",
    lambda hf, x: parts(hf, hf.fft.rfft(x.t()[::2])),
    lambda x: np_parts(np.fft.rfft(x.T[::2])),
    (4, 6),
    label=" strided",
)
case(
    "fft_r2c",
    lambda hf, x: parts(hf, hf.fft.rfft(x)),
    lambda x: np.zeros((0, 3, 2)),
    (0, 4),
    grad=(),
    label=" empty",
)


def np_hfft2(x):
    """What NumPy lacks: fft over the first dimension, hfft over the second."""
    return np.fft.hfft(np.fft.fft(np_complex(x), axis=0), axis=1)


case(
    "fft.hfft2",
    lambda hf, x: hf.fft.hfft2(hf.view_as_complex(x)),
    np_hfft2,
    (3, 4, 2),
)
case(
    "fft.hfftn",
    lambda hf, x: hf.fft.hfftn(hf.view_as_complex(x)),
    np_hfft2,
    (3, 4, 2),
)
for name in ("ihfft2", "ihfftn"):
    case(
        f"fft.{name}",
        lambda hf, x, f=name: parts(hf, getattr(hf.fft, f)(x)),
        lambda x: np_parts(np.fft.ifft(np.fft.ihfft(x, axis=1), axis=0)),
        (3, 4),
    )
for n in (1, 4, 5):
    for d in (1.0, 0.25):
        case(
            "fft.fftfreq",
            lambda hf, n=n, d=d: hf.fft.fftfreq(n, d),
            lambda n=n, d=d: np.fft.fftfreq(n, d),
            label=f" n={n} d={d}",
        )
        case(
            "fft.rfftfreq",
            lambda hf, n=n, d=d: hf.fft.rfftfreq(n, d),
            lambda n=n, d=d: np.fft.rfftfreq(n, d),
            label=f" n={n} d={d}",
        )
for name in ("fftshift", "ifftshift"):
    for dim in (None, 1, (0, 2)):
        case(
            f"fft.{name}",
            lambda hf, x, f=name, d=dim: getattr(hf.fft, f)(x, d),
            lambda x, f=name, d=dim: getattr(np.fft, f)(x, d),
            (4, 5, 3),
            label=f" dim={dim}",
        )
