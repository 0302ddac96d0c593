# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Cases of linear algebra for run_cases.py: one matrix and batches, of sizes that
the libraries have different ways for, in float32 and float64. Factors are
compared by what does not depend on signs."""

import re

SQUARE = [(1, 1), (5, 5), (70, 70), (600, 600), (7, 3, 3), (40, 33, 33), (2, 520, 520)]
ANY = [(9, 4), (4, 9), (33, 31), (300, 40), (50, 8, 5), (50, 5, 8), (3, 70, 90)]


def cases():
    """(name, function of (module, tensors...), input shapes, wants positive)."""
    for kind in ("float", "double"):
        for name, run, shapes in _cases():
            yield f"linalg.{name} {kind}", _in(kind, run), shapes, False


def _in(kind, run):
    def converted(t, *tensors):
        return run(t, *(getattr(x, kind)() for x in tensors))

    return converted


def _cases():
    for shape in SQUARE:
        size = list(shape)
        yield f"cholesky{size}", lambda t, x: t.linalg.cholesky(_spd(t, x)), [shape]
        yield f"cholesky upper{size}", lambda t, x: t.linalg.cholesky(
            _spd(t, x), upper=True
        ), [shape]
        yield f"inv{size}", lambda t, x: t.linalg.inv(_regular(t, x)), [shape]
        yield f"slogdet{size}", lambda t, x: t.linalg.slogdet(_regular(t, x))[1], [
            shape
        ]
        yield f"eigvalsh{size}", lambda t, x: t.linalg.eigvalsh(_spd(t, x)), [shape]
        yield f"eigh{size}", _eigh, [shape]
        yield f"matrix_exp{size}", lambda t, x: t.linalg.matrix_exp(
            x / x.shape[-1] ** 0.5
        ), [shape]
        if max(shape) < 100:  # values of large ones are less well conditioned
            yield f"eig{size}", _eig, [shape]
        right = shape[:-1] + (3,)
        yield f"solve{size}", lambda t, x, b: t.linalg.solve(_regular(t, x), b), [
            shape,
            right,
        ]
        for upper in (False, True):
            yield (
                f"solve_triangular{size} upper={upper}",
                lambda t, x, b, u=upper: t.linalg.solve_triangular(
                    _regular(t, x), b, upper=u
                ),
                [shape, right],
            )
    yield "solve broadcast", lambda t, x, b: t.linalg.solve(_regular(t, x), b), [
        (2, 1, 6, 6),
        (4, 6, 5),
    ]
    yield "solve_triangular strided", lambda t, x, b: t.linalg.solve_triangular(
        _regular(t, x).mT, b.mT, upper=True, left=False, unitriangular=True
    ), [(3, 9, 9), (9, 4)]
    yield "matrix_exp large norms", lambda t, x: t.linalg.matrix_exp(
        x * t.arange(1, 6, device=x.device).reshape(5, 1, 1)
    ), [(5, 6, 6)]
    for shape in SQUARE + ANY:
        size = list(shape)
        yield f"lu{size}", _lu, [shape]
        yield f"svdvals{size}", lambda t, x: t.linalg.svdvals(x), [shape]
        yield f"pinv{size}", lambda t, x: t.linalg.pinv(_regular(t, x)), [shape]
        for full in (False, True):
            yield (
                f"svd{size} full={full}",
                lambda t, x, f=full: _svd(t, x, f),
                [shape],
            )
        for mode in ("reduced", "complete"):
            yield (
                f"qr{size} {mode}",
                lambda t, x, m=mode: _qr(t, x, m),
                [shape],
            )
    yield "cholesky: errors", _not_positive, [(5, 4, 4)]
    yield "solve: errors", _singular, [(5, 4, 4)]


def _eye(t, x):
    return t.eye(x.shape[-2], x.shape[-1], dtype=x.dtype, device=x.device)


def _regular(t, x):
    return x / x.shape[-1] ** 0.5 + 3 * _eye(t, x)


def _spd(t, x):
    return x @ x.mT / x.shape[-1] + _eye(t, x)


def _together(t, *parts):
    return t.cat([p.reshape(-1) for p in parts])


def _lu(t, x):
    p, low, up = t.linalg.lu(x)
    return _together(t, p, p @ low @ up, t.triu(up) - up)


def _eigh(t, x):
    values, vectors = t.linalg.eigh(_spd(t, x))
    again = (vectors * values.unsqueeze(-2)) @ vectors.mT
    return _together(t, values, again, vectors.mT @ vectors)


def _eig(t, x):
    """Sums that the order of the eigenvalues does not change, and A V - V diag(w)."""
    values, vectors = t.linalg.eig(x)
    w, v = t.view_as_real(values), t.view_as_real(vectors)
    re, im = v[..., 0], v[..., 1]
    a, b = w[..., 0].unsqueeze(-2), w[..., 1].unsqueeze(-2)
    left, right = x @ re - (re * a - im * b), x @ im - (re * b + im * a)
    return _together(t, w[..., 0].sort(-1)[0], left, right)


def _svd(t, x, full):
    u, s, vh = t.linalg.svd(x, full)
    k = s.shape[-1]
    again = (u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :]
    return _together(t, s, again, u.mT @ u, vh @ vh.mT)


def _qr(t, x, mode):
    q, r = t.linalg.qr(x, mode)
    return _together(t, q @ r, q.mT @ q, r.abs())


def _complaint(t, call):
    """The number of the matrix that the error names, and of its minor."""
    try:
        call()
    except RuntimeError as error:
        numbers = re.findall(r"(?:Batch element|minor of order) (\d+)", str(error))
        return t.tensor([float(n) for n in numbers])
    return t.tensor([-1.0])


def _not_positive(t, x):
    a = _spd(t, x)
    a[3, 2, 2] = -1
    return _complaint(t, lambda: t.linalg.cholesky(a).sum().item())


def _singular(t, x):
    a = _regular(t, x)
    a[2] = 0
    return _complaint(t, lambda: t.linalg.solve(a, x).sum().item())
