# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of eigenvalues and singular values."""

import numpy as np
import scipy.linalg
from op_cases import case
from op_cases_linalg import rng, regular, spd, np_spd, T

# ---- symmetric eigenvalues


def symmetric(hf, x):
    return x + x.mT


for shape in [(3, 3), (2, 4, 4), (1, 1), (2, 1, 2, 2)]:
    x = rng.uniform(-2, 2, shape)
    case(
        "linalg_eigh",
        lambda hf, x: hf.linalg.eigh(symmetric(hf, x))[0],
        lambda x: np.linalg.eigh(x + T(x))[0],
        x,
        label=" values",
    )
    case(
        "linalg_eigh",
        lambda hf, x: hf.linalg.eigh(symmetric(hf, x))[1] ** 2,
        lambda x: np.linalg.eigh(x + T(x))[1] ** 2,
        x,
        label=" vectors",
    )


def power_half(hf, x):
    w, v = hf.linalg.eigh(spd(hf, x), "U")
    return (v * w.sqrt().unsqueeze(-2)) @ v.mT


case(
    "linalg_eigh",
    power_half,
    lambda x: scipy.linalg.sqrtm(np_spd(x)).real,
    (3, 4),
    label=" root",
)
case(
    "linalg_eigvalsh",
    lambda hf, x: hf.linalg.eigvalsh(symmetric(hf, x.detach())),
    lambda x: np.linalg.eigvalsh(x + T(x)),
    (2, 5, 5),
    grad=(),
)
for uplo in ("L", "U"):
    case(
        "linalg.eigvalsh",
        lambda hf, x, u=uplo: hf.linalg.eigvalsh(x, u),
        lambda x, u=uplo: np.linalg.eigvalsh(x, u),
        rng.uniform(-2, 2, (4, 4)),
        grad=(),
        label=f" {uplo}",
    )

# ---- other eigenvalues


def in_order(w):
    """The eigenvalues' real parts, which no order of theirs changes."""
    return np.sort(w.real, -1)


for shape in [(3, 3), (2, 5, 5), (1, 1)]:
    x = rng.uniform(-2, 2, shape)
    case(
        "linalg_eig",
        lambda hf, a: hf.view_as_real(hf.linalg.eigvals(a))[..., 0].sort(-1)[0],
        lambda a: in_order(np.linalg.eigvals(a)),
        x,
        grad=(),
    )
    # A V = V diag(w), in real numbers.
    case(
        "linalg_eig",
        lambda hf, a: hf.stack(
            [
                a @ hf.view_as_real(hf.linalg.eig(a)[1])[..., i]
                - hf.view_as_real(
                    hf.linalg.eig(a)[1] * hf.linalg.eig(a)[0].unsqueeze(-2)
                )[..., i]
                for i in (0, 1)
            ]
        ),
        lambda a: np.zeros((2,) + a.shape),
        x,
        grad=(),
        label=" equation",
    )

apart = rng.uniform(-1, 1, (2, 4, 4)) + np.diag([1.0, 3.0, -2.0, 5.0])
turning = np.array([[0.3, -2.0, 0.1], [1.5, 0.2, 0.4], [0.2, -0.1, 3.0]])
for label, matrix in [(" real", apart), (" complex", turning)]:
    case(
        "linalg.eigvals",
        lambda hf, a: hf.linalg.eigvals(a).abs().sort(-1)[0],
        lambda a: np.sort(np.abs(np.linalg.eigvals(a))),
        matrix,
        label=label,
    )
    # What no eigenvector's phase changes, in an order that no eigenvalue's changes.
    case(
        "linalg.eig",
        lambda hf, a: (hf.linalg.eig(a)[1].abs() ** 4).sum(-2).sort(-1)[0],
        lambda a: np.sort((np.abs(np.linalg.eig(a)[1]) ** 4).sum(-2)),
        matrix,
        label=label,
    )

# ---- square roots


def np_root(a):
    w, v = np.linalg.eigh(a)
    return (v * np.sqrt(w)[..., None, :]) @ T(v)


for shape in [(3, 3), (2, 4, 5), (0, 0)]:
    case(
        "linalg.matrix_sqrth",
        lambda hf, x: hf.linalg.matrix_sqrth(spd(hf, x)),
        lambda x: np_root(np_spd(x)),
        shape,
    )
# Of the identity, where eigh() has no gradient.
case(
    "linalg.matrix_sqrth",
    lambda hf, x: hf.linalg.matrix_sqrth(spd(hf, x)),
    lambda x: np_root(np_spd(x)),
    np.zeros((3, 3)),
    label=" identity",
)


def np_polar(a):
    u, s, vh = np.linalg.svd(a, False)
    return u @ vh, (T(vh) * s[..., None, :]) @ vh


turned = np.linalg.qr(rng.uniform(-1, 1, (4, 3)))[0]
for label, matrix in [
    ("", rng.uniform(-2, 2, (3, 3))),
    (" tall", rng.uniform(-2, 2, (2, 4, 3))),
    (" orthonormal", turned),
    (" empty", np.zeros((0, 2, 2))),
]:
    for i in (0, 1):
        case(
            "linalg.polar",
            lambda hf, a, i=i: hf.linalg.polar(a)[i],
            lambda a, i=i: np_polar(a)[i],
            matrix,
            label=f"{label} {'UH'[i]}",
        )

# ---- singular values

for shape in [(3, 3), (4, 2), (2, 3, 4), (1, 3)]:
    x = rng.uniform(-2, 2, shape)
    for full in (True, False):
        for i in range(3):

            def part(usv, i=i):
                return usv[i] ** 2 if i != 1 else usv[i]

            tall, wide = shape[-2] > shape[-1], shape[-1] > shape[-2]
            case(
                "linalg_svd",
                lambda hf, a, f=full, part=part: part(hf.linalg.svd(a, f)),
                lambda a, f=full, part=part: part(np.linalg.svd(a, f)),
                x,
                grad=() if full and ((i == 0 and tall) or (i == 2 and wide)) else None,
                label=f" full={full} {'USV'[i]}",
            )


def stretched(hf, a):
    u, s, v = hf.svd(a)
    return (u * s**2) @ v.mT


def np_stretched(a):
    u, s, vh = np.linalg.svd(a, False)
    return (u * s**2) @ vh


case(
    "svd",
    stretched,
    np_stretched,
    regular(4, 3),
)
case(
    "linalg_svdvals",
    lambda hf, a: hf.linalg.svdvals(a),
    lambda a: np.linalg.svd(a, compute_uv=False),
    (2, 3, 5),
    grad=(),
)
case(
    "linalg.svdvals",
    lambda hf, a: hf.linalg.svdvals(a),
    lambda a: np.linalg.svd(a, compute_uv=False),
    (3, 2),
)
case(
    "linalg_svdvals",
    lambda hf, a: hf.linalg.svdvals(a),
    lambda a: np.zeros((2, 0)),
    (2, 0, 3),
    grad=(),
)


for vectors in (False, True):
    case(
        "symeig",
        lambda hf, x, v=vectors: hf.symeig(symmetric(hf, x), v)[0],
        lambda x: np.linalg.eigh(x + T(x))[0],
        rng.uniform(-2, 2, (3, 3)),
        label=f" vectors={vectors}",
    )
