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

# ---- products and systems of complex matrices; sizes on both sides of blocks

for op, expression, first, second in [
    ("matmul", lambda hf, a, b: a @ b, (3, 4, 2), (4, 5, 2)),
    ("matmul", lambda hf, a, b: a @ b, (2, 1, 3, 4, 2), (3, 4, 2, 2)),
    ("matmul", lambda hf, a, b: a @ b, (4, 2), (2, 4, 3, 2)),
    ("matmul", lambda hf, a, b: a @ b, (3, 4, 2), (4, 2)),
    ("matmul", lambda hf, a, b: a @ b.T, (3, 4, 2), (5, 4, 2)),
    ("matmul", lambda hf, a, b: a[:, ::2] @ b[::2], (3, 4, 2), (4, 5, 2)),
    ("matmul", lambda hf, a, b: a @ b, (0, 3, 2), (3, 2, 2)),
    ("matmul", lambda hf, a, b: a @ b, (3, 0, 2), (0, 2, 2)),
    ("linear", lambda hf, a, b: hf.nn.functional.linear(a, b), (3, 4, 2), (5, 4, 2)),
]:
    case(
        op,
        lambda hf, a, b, f=expression: hf.view_as_real(f(hf, made(hf, a), made(hf, b))),
        (lambda a, b: parts(pairs(a) @ pairs(b).T))
        if op == "linear"
        else lambda a, b, f=expression: parts(f(np, pairs(a), pairs(b))),
        first,
        second,
        label=" complex",
    )
case(
    "vdot",
    lambda hf, a, b: hf.view_as_real(hf.vdot(made(hf, a), made(hf, b))),
    lambda a, b: parts(np.vdot(pairs(a), pairs(b))),
    (4, 2),
    (4, 2),
)
regular = np.random.default_rng(8).standard_normal((2, 3, 3, 2))
regular[..., 0] += 3 * np.eye(3)
for op, ours, reference, operands in [
    ("linalg.inv", lambda hf, a: hf.linalg.inv(a), np.linalg.inv, ()),
    ("linalg.det", lambda hf, a: hf.linalg.det(a), np.linalg.det, ()),
    (
        "linalg_solve",
        lambda hf, a, b: hf.linalg.solve(a, b),
        np.linalg.solve,
        ((2, 3, 2, 2),),
    ),
    (
        "linalg_solve_triangular",
        lambda hf, a, b: hf.linalg.solve_triangular(a, b, upper=True),
        lambda a, b: np.linalg.solve(np.triu(a), b),
        ((2, 3, 2, 2),),
    ),
]:
    case(
        op,
        lambda hf, *x, f=ours: hf.view_as_real(f(hf, *(made(hf, a) for a in x))),
        lambda *x, f=reference: parts(f(*(pairs(a) for a in x))),
        regular,
        *operands,
        label=" complex",
    )
case(
    "slogdet",
    lambda hf, a: hf.slogdet(made(hf, a))[1],
    lambda a: np.linalg.slogdet(pairs(a))[1],
    regular,
    label=" complex",
)

# ---- elementary functions on both sides of their cuts, and products

FUNCTIONS = {
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
PLANE = np.array(
    [[x, y] for x in (-2.5, -0.6, 0.3, 1.7) for y in (-1.9, -0.4, 0.2, 2.3)]
)
for op, function in FUNCTIONS.items():
    case(
        op,
        lambda hf, a, op=op: hf.view_as_real(getattr(hf, op)(made(hf, a))),
        lambda a, function=function: parts(function(pairs(a))),
        PLANE,
        label=" complex",
    )
for op, axis, numpy_op in [
    ("prod", 0, np.prod),
    ("prod", 1, np.prod),
    ("cumsum", 0, np.cumsum),
    ("cumsum", 1, np.cumsum),
    ("cumprod", 0, np.cumprod),
    ("cumprod", 1, np.cumprod),
]:
    case(
        op,
        lambda hf, a, op=op, axis=axis: hf.view_as_real(
            getattr(hf, op)(made(hf, a), axis)
        ),
        lambda a, axis=axis, f=numpy_op: parts(f(pairs(a), axis)),
        (5, 3, 2),
        label=f" complex {axis}",
    )
case(
    "prod",
    lambda hf, a: hf.view_as_real(made(hf, a).prod()),
    lambda a: parts(np.prod(pairs(a))),
    (7, 2),
    label=" complex",
)
case(
    "prod",
    lambda hf, a: hf.view_as_real(made(hf, a).prod(0)),
    lambda a: parts(np.prod(pairs(a), 0)),
    np.array([[0.0, 0.0], [1.0, 2.0], [0.5, -1.0]]),
    label=" complex zero",
)
