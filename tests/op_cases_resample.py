# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of resizing and of sampling at given positions."""

import itertools

import numpy as np
from op_cases import away_from, case

# ---- resizing: as matrices along each axis


def cubic(x, a=-0.75):
    x = abs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def matrix(n, out, mode, align, scale=0):
    """[out, n]: what each output takes from each input."""
    m = np.zeros((out, n))
    step = 1 / scale if scale else n / out
    if align:
        step = (n - 1) / (out - 1) if out > 1 else 0.0
    for i in range(out):
        at = i * step if align else (i + 0.5) * step - 0.5
        if mode == "nearest":
            m[i, min(int(np.float32(i) * np.float32(step)), n - 1)] = 1
        elif mode == "nearest-exact":
            m[i, min(int((i + 0.5) * step), n - 1)] = 1
        elif mode == "area":
            low, high = i * n // out, -(-(i + 1) * n // out)
            m[i, low:high] = 1 / (high - low)
        elif mode == "linear":
            low = int(max(at, 0))
            m[i, min(low, n - 1)] += 1 - (max(at, 0) - low)
            m[i, min(low + 1, n - 1)] += max(at, 0) - low
        elif mode == "cubic":
            low = int(np.floor(at))
            for j in range(low - 1, low + 3):
                m[i, min(max(j, 0), n - 1)] += cubic(at - j)
        else:
            wide = mode == "cubic-antialias"
            stretch = max(step, 1)
            support, centre = (2 if wide else 1) * stretch, step * (i + 0.5)
            low = max(int(centre - support + 0.5), 0)
            for j in range(low, min(int(centre + support + 0.5), n)):
                x = (j - centre + 0.5) / stretch
                m[i, j] = cubic(x, -0.5) if wide else max(0, 1 - abs(x))
            m[i] /= m[i].sum()
    return m


def resized(x, size, mode, align=False, scales=None):
    for i, out in enumerate(size):
        axis = x.ndim - len(size) + i
        scale = scales[i] if scales else 0
        m = matrix(x.shape[axis], out, mode, align, scale)
        x = np.moveaxis(np.tensordot(m, x, (1, axis)), 0, axis)
    return x


MODES = (
    "nearest",
    "nearest-exact",
    "linear",
    "cubic",
    "area",
    "linear-antialias",
    "cubic-antialias",
)
for mode, (shape, size) in itertools.product(
    MODES, [((2, 3, 4), (5, 7)), ((1, 5, 6), (2, 3)), ((2, 1, 1), (2, 1))]
):
    case(
        "resample2d",
        lambda hf, x, s=size, m=mode: hf._C.ops.resample2d(x, s, m),
        lambda x, s=size, m=mode: resized(x, s, m),
        shape,
        label=f" {mode} {size}",
    )
    case(
        "resample2d_backward",
        lambda hf, g, s=shape[1:], m=mode: hf._C.ops.resample2d_backward(g, s, m),
        lambda g, s=shape[1:], m=mode: np.einsum(
            "nij,ih,jw->nhw",
            g,
            matrix(s[0], g.shape[1], m, False),
            matrix(s[1], g.shape[2], m, False),
        ),
        (shape[0], *size),
        label=f" {mode} {size}",
    )
case(
    "resample2d",
    lambda hf, x: hf._C.ops.resample2d(x.permute(2, 0, 1), (4, 2), "linear"),
    lambda x: resized(x.transpose(2, 0, 1), (4, 2), "linear"),
    (3, 2, 2),
    label=" permuted",
)
case(
    "resample2d",
    lambda hf, x: hf._C.ops.resample2d(x, (4, 2), "cubic"),
    lambda x: np.zeros((0, 4, 2)),
    (0, 2, 2),
    label=" empty",
    grad=(),
)
for mode, own, shape in [
    ("nearest", "nearest", (1, 2, 3)),
    ("nearest", "nearest", (1, 1, 2, 3, 2)),
    ("linear", "linear", (2, 1, 4)),
    ("bilinear", "linear", (1, 2, 3, 4)),
    ("bicubic", "cubic", (1, 2, 3, 4)),
    ("trilinear", "linear", (1, 1, 2, 3, 2)),
]:
    for align in (False, True) if "near" not in mode[:4] else (None,):
        axes = len(shape) - 2
        size = tuple(range(4, 4 + axes))
        case(
            "nn.functional.interpolate",
            lambda hf, x, s=size, m=mode, a=align: hf.nn.functional.interpolate(
                x, s, mode=m, align_corners=a
            ),
            lambda x, s=size, m=own, a=align: resized(x, s, m, a),
            shape,
            label=f" {mode} {align}",
        )
    case(
        "nn.functional.interpolate",
        lambda hf, x, m=mode: hf.nn.functional.interpolate(
            x, scale_factor=1.75, mode=m
        ),
        lambda x, m=own: resized(
            x, [int(n * 1.75) for n in x.shape[2:]], m, scales=[1.75] * 3
        ),
        shape,
        label=f" {mode} scale",
    )

# ---- sampling

at = np.array([[[0, 3, -1], [5, 2, 1]], [[4, 4, 0], [-1, -1, 5]]])


def gathered(x, i, w):
    out = np.zeros((x.shape[0], x.shape[1], i.shape[2]))
    for n, k, p in np.ndindex(*i.shape):
        if i[n, k, p] >= 0:
            out[n, :, p] += w[n, k, p] * x[n, :, i[n, k, p]]
    return out


def scattered(g, i, w):
    out = np.zeros((g.shape[0], g.shape[1], 6))
    for n, k, p in np.ndindex(*i.shape):
        if i[n, k, p] >= 0:
            out[n, :, i[n, k, p]] += w[n, k, p] * g[n, :, p]
    return out


def dots(g, i, x):
    out = np.zeros(i.shape)
    for n, k, p in np.ndindex(*i.shape):
        if i[n, k, p] >= 0:
            out[n, k, p] = (g[n, :, p] * x[n, :, i[n, k, p]]).sum()
    return out


case(
    "weighted_gather",
    lambda hf, x, i, w: hf._C.ops.weighted_gather(x, i, w),
    gathered,
    (2, 3, 6),
    at,
    (2, 2, 3),
)
case(
    "weighted_gather_backward_input",
    lambda hf, g, i, w: hf._C.ops.weighted_gather_backward_input(g, i, w, 6),
    scattered,
    (2, 3, 3),
    at,
    (2, 2, 3),
)
case(
    "weighted_gather_backward_weight",
    lambda hf, g, i, x: hf._C.ops.weighted_gather_backward_weight(g, i, x),
    dots,
    (2, 3, 3),
    at,
    (2, 3, 6),
)


def sampled(x, grid, padding, align):
    """Multilinear sampling, point by point."""
    axes = grid.shape[-1]
    sizes = x.shape[2:]
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for at in np.ndindex(*grid.shape[:-1]):
        point = []
        for v, n in zip(grid[at][::-1], sizes):
            v = (v + 1) / 2 * (n - 1) if align else ((v + 1) * n - 1) / 2
            point.append(min(max(v, 0), n - 1) if padding == "border" else v)
        low = np.floor(point).astype(int)
        for corner in np.ndindex(*[2] * axes):
            spot = low + corner
            if (spot < 0).any() or (spot >= sizes).any():
                continue
            weight = np.prod(1 - abs(np.array(point) - spot))
            out[(at[0], slice(None), *at[1:])] += (
                weight * x[(at[0], slice(None), *spot)]
            )
    return out


for shape, grid in [((2, 2, 3, 4), (2, 2, 3, 2)), ((1, 2, 3, 2, 3), (1, 2, 1, 3, 3))]:
    for padding, align in [("zeros", False), ("zeros", True), ("border", False)]:
        # No position where the derivative jumps: between pixels, inside edges.
        places = away_from([], grid, -1.1, 1.1)
        case(
            "nn.functional.grid_sample",
            lambda hf, x, g, p=padding, a=align: hf.nn.functional.grid_sample(
                x, g, "bilinear", p, a
            ),
            lambda x, g, p=padding, a=align: sampled(x, g, p, a),
            shape,
            places,
            label=f" {padding} {align}",
        )


def nearest_taps(grid, size, align):
    """grid_taps' index: one per point, -1 outside."""
    index = np.zeros(grid.shape[:2], int)
    outside = np.zeros(grid.shape[:2], bool)
    for i, n in enumerate(size):
        v = grid[..., len(size) - 1 - i] + 1
        v = np.round(v * (n - 1) / 2 if align else v * n / 2 - 0.5)
        outside |= (v < 0) | (v > n - 1)
        index = index * n + np.clip(v, 0, n - 1).astype(int)
    return np.where(outside, -1, index)[:, None]


for align, axes in itertools.product((False, True), (2, 3)):
    case(
        "grid_taps",
        lambda hf, g, s=(3, 4, 5)[:axes], a=align: hf._C.ops.grid_taps(
            g, s, "nearest", "zeros", a
        )[0],
        lambda g, s=(3, 4, 5)[:axes], a=align: nearest_taps(g, s, a),
        away_from([], (2, 40, axes), -1.3, 1.3),
        grad=(),
        label=f" {axes} {align}",
    )


def affine(theta, size, align):
    axes = len(size)
    lines = []
    for n in size:
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        lines.append(line if align else line * (n - 1) / n)
    mesh = np.meshgrid(*lines, indexing="ij")[::-1]
    base = np.stack([*mesh, np.ones(size)], -1)
    return np.einsum("...k,nik->n...i", base, theta).reshape(-1, *size, axes)


for align, shape, size in [(False, (2, 2, 3), (3, 4)), (True, (1, 3, 4), (2, 1, 3))]:
    case(
        "nn.functional.affine_grid",
        lambda hf, t, s=size, a=align: hf.nn.functional.affine_grid(
            t, (t.shape[0], 1, *s), a
        ),
        lambda t, s=size, a=align: affine(t, s, a),
        shape,
        label=f" {align}",
    )
