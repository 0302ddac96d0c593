# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Cases of complex numbers. Inputs and results are real, so that finite
differences apply: numbers are made of pairs inside the case."""

import numpy as np
from op_cases import case

PAIRS = (3, 2)


def pairs(a):
    return a[..., 0] + 1j * a[..., 1]


def parts(z):
    return np.stack([z.real, z.imag], -1)


def made(hf, a):
    return hf.view_as_complex(a.contiguous())


case(
    "conj",
    lambda hf, a: hf.view_as_real(made(hf, a).conj()),
    lambda a: parts(pairs(a).conj()),
    PAIRS,
)
case(
    "view_as_real",
    lambda hf, a: hf.view_as_real(made(hf, a) * (2 - 1j)),
    lambda a: parts(pairs(a) * (2 - 1j)),
    PAIRS,
)
case(
    "view_as_complex",
    lambda hf, a, b: abs(made(hf, a) * made(hf, b)),
    lambda a, b: abs(pairs(a) * pairs(b)),
    PAIRS,
    PAIRS,
)
case(
    "real", lambda hf, a: made(hf, a).exp().real, lambda a: np.exp(pairs(a)).real, PAIRS
)
case(
    "imag", lambda hf, a: made(hf, a).sin().imag, lambda a: np.sin(pairs(a)).imag, PAIRS
)
case(
    "complex",
    lambda hf, a, b: hf.complex(a, b).sqrt().real,
    lambda a, b: np.sqrt(a + 1j * b).real,
    (3, 4),
    (4,),
)
case(
    "polar",
    lambda hf, a, b: hf.polar(a, b).imag,
    lambda a, b: a * np.sin(b),
    (3, 4),
    (3, 4),
)

both = np.array([complex(1, np.inf), complex(np.nan, -np.inf), complex(np.nan, 2)])
case("isinf", lambda hf, a: hf.isinf(a), np.isinf, both, grad=())
case(
    "nan_to_num",
    lambda hf, a: hf.nan_to_num(a, 7.0, 2.0).real,
    lambda a: np.nan_to_num(a, nan=7.0, posinf=2.0, neginf=np.finfo("f8").min).real,
    both,
    grad=(),
)
case(
    "linalg.vecdot",
    lambda hf, a, b: hf.linalg.vecdot(a, b).imag,
    lambda a, b: (a.conj() * b).sum(-1).imag,
    np.array([[1 + 2j, 3 - 1j], [0.5j, 2]]),
    np.array([[1 - 1j, 2j], [3, 1 + 1j]]),
    grad=(),
)
case(
    "gradient",
    lambda hf, a: hf.gradient(a)[0].imag,
    lambda a: np.gradient(a).imag,
    np.array([1 + 2j, 3 - 1j, 0.5j, 2]),
    grad=(),
)
case(
    "norm",
    lambda hf, a: hf.norm(a, 3, 0),
    lambda a: (np.abs(a) ** 3).sum(0) ** (1 / 3),
    np.array([[1 + 2j, 3 - 1j], [0.5j, 2]]),
    grad=(),
)
