# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of convolutions of one to three dimensions, padding, columns of
windows, and pixels moved to channels. conv2d's are in op_cases_neural.py."""

import numpy as np
from op_cases import case


def windows(x, kernel, stride, padding, dilation, fill=0.0):
    """The windows over the last dimensions: [..., *places, *kernel]."""
    axes = len(kernel)
    x = np.pad(
        x,
        [(0, 0)] * (x.ndim - axes) + [(p, p) for p in padding],
        constant_values=fill,
    )
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    view = np.lib.stride_tricks.sliding_window_view(x, extent, range(-axes, 0))
    steps = [slice(None, None, s) for s in (*stride, *dilation)]
    return view[(..., *steps)]


def all_axes(options, axes, **defaults):
    def spread(value):
        return (value,) * axes if isinstance(value, int) else tuple(value)

    return {k: spread(options.get(k, d)) for k, d in defaults.items()}


def conv(x, w, b=None, groups=1, **options):
    axes = w.ndim - 2
    o = all_axes(options, axes, stride=1, padding=0, dilation=1)
    view = windows(x, w.shape[2:], o["stride"], o["padding"], o["dilation"])
    letters = "abcdef"[: 2 * axes]
    places, taps = letters[:axes], letters[axes:]
    parts = [
        np.einsum(f"ni{letters},oi{taps}->no{places}", v, k)
        for v, k in zip(np.split(view, groups, 1), np.split(w, groups, 0))
    ]
    out = np.concatenate(parts, 1)
    return out if b is None else out + b.reshape(-1, *[1] * axes)


def conv_transpose(x, w, b=None, groups=1, **options):
    axes = w.ndim - 2
    o = all_axes(options, axes, stride=1, padding=0, dilation=1, output_padding=0)
    full = [
        (n - 1) * s + d * (k - 1) + 1 + extra
        for n, s, d, k, extra in zip(
            x.shape[2:],
            o["stride"],
            o["dilation"],
            w.shape[2:],
            o["output_padding"],
        )
    ]
    out = np.zeros((x.shape[0], w.shape[1] * groups, *full))
    for g in range(groups):
        xs, ws = np.split(x, groups, 1)[g], np.split(w, groups, 0)[g]
        rows = slice(g * w.shape[1], (g + 1) * w.shape[1])
        for tap in np.ndindex(w.shape[2:]):
            spots = [
                slice(t * d, t * d + s * (n - 1) + 1, s)
                for t, d, s, n in zip(tap, o["dilation"], o["stride"], x.shape[2:])
            ]
            product = np.einsum("ni...,io->no...", xs, ws[(..., *tap)])
            out[(slice(None), rows, *spots)] += product
    crop = [slice(p, n - p) for p, n in zip(o["padding"], full)]
    out = out[(..., *crop)]
    return out if b is None else out + b.reshape(-1, *[1] * axes)


for axes, label, options, x, w in [
    (1, "", {}, (2, 3, 6), (4, 3, 3)),
    (1, " all", dict(stride=2, padding=1, dilation=2, groups=2), (2, 4, 7), (2, 2, 2)),
    (1, " size 1", {}, (1, 1, 1), (1, 1, 1)),
    (3, "", {}, (2, 2, 3, 3, 4), (3, 2, 2, 2, 3)),
    (
        3,
        " all",
        dict(stride=(2, 1, 2), padding=(1, 0, 1), dilation=(1, 2, 1), groups=2),
        (1, 2, 3, 4, 3),
        (4, 1, 2, 2, 3),
    ),
    (3, " size 1", {}, (1, 1, 1, 1, 1), (2, 1, 1, 1, 1)),
]:
    name = f"conv{axes}d"
    case(
        "conv3d" if axes == 3 else f"nn.functional.{name}",
        lambda hf, x, w, b, f=name, k=options: getattr(hf.nn.functional, f)(
            x, w, b, **k
        ),
        lambda x, w, b, k=options: conv(x, w, b, **k),
        x,
        w,
        (w[0],),
        label=label,
    )
case(
    "conv3d",
    lambda hf, x, w: hf.nn.functional.conv3d(x.permute(0, 4, 1, 3, 2), w),
    lambda x, w: conv(x.transpose(0, 4, 1, 3, 2), w),
    (1, 2, 3, 2, 2),
    (2, 2, 2, 2, 2),
    label=" permuted",
)
case(
    "conv3d",
    lambda hf, x, w: hf.nn.functional.conv3d(x, w),
    lambda x, w: np.zeros((0, 3, 2, 2, 2)),
    (0, 2, 3, 3, 3),
    (3, 2, 2, 2, 2),
    label=" empty",
    grad=(),
)

for axes, label, options, x, w in [
    (1, "", {}, (2, 3, 4), (3, 2, 3)),
    (1, " all", dict(stride=2, padding=1, output_padding=1), (1, 2, 4), (2, 1, 3)),
    (2, "", {}, (1, 2, 3, 4), (2, 3, 2, 2)),
    (
        2,
        " all",
        dict(stride=2, padding=1, output_padding=(1, 0), groups=2, dilation=(1, 2)),
        (2, 4, 3, 2),
        (4, 1, 3, 2),
    ),
    (2, " wide", dict(dilation=3, output_padding=2), (1, 1, 2, 2), (1, 2, 2, 2)),
    (3, "", {}, (1, 2, 2, 2, 3), (2, 1, 2, 1, 2)),
    (3, " all", dict(stride=2, padding=1), (1, 2, 2, 2, 3), (2, 2, 2, 3, 2)),
]:
    name = f"conv_transpose{axes}d"
    case(
        f"nn.functional.{name}",
        lambda hf, x, w, b, f=name, k=options: getattr(hf.nn.functional, f)(
            x, w, b, **k
        ),
        lambda x, w, b, k=options: conv_transpose(x, w, b, **k),
        x,
        w,
        (w[1] * options.get("groups", 1),),
        label=label,
    )
case(
    "conv3d_backward_input",
    lambda hf, g, w: hf._C.ops.conv3d_backward_input(
        g, w, [1, 2, 4, 3, 3], [2, 1, 1], [0, 0, 1], 1, 1
    ),
    lambda g, w: conv_transpose(g, w, stride=(2, 1, 1), padding=(0, 0, 1)),
    (1, 3, 2, 2, 4),
    (3, 2, 2, 2, 2),
)


def weight_gradient(g, x):
    """Convolution of the images with their gradients, channels as batch."""
    return conv(x.swapaxes(0, 1), g.swapaxes(0, 1)).swapaxes(0, 1)


case(
    "conv3d_backward_weight",
    lambda hf, g, x: hf._C.ops.conv3d_backward_weight(
        g, x, [3, 2, 2, 2, 3], 1, 0, 1, 1
    ),
    weight_gradient,
    (2, 3, 2, 1, 2),
    (2, 2, 3, 2, 4),
)

# ---- padding

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
for mode, theirs in MODES.items():
    for shape, amounts in [
        ((2, 5), (2, 1)),
        ((2, 3, 4), (2, 1, 0, 2)),
        ((1, 3, 3, 3), (1, 2, 2, 0, 1, 1)),
    ]:
        case(
            "nn.functional.pad",
            lambda hf, a, p=amounts, m=mode: hf.nn.functional.pad(a, p, m),
            lambda a, p=amounts, m=theirs: np.pad(
                a,
                [(0, 0)] * (a.ndim - len(p) // 2)
                + [(p[i], p[i + 1]) for i in range(len(p) - 2, -1, -2)],
                m,
            ),
            shape,
            label=f" {mode}",
        )
case(
    "nn.functional.pad",
    lambda hf, a: hf.nn.functional.pad(a.t(), (-1, 2), "replicate"),
    lambda a: np.pad(a.T[:, 1:], ((0, 0), (0, 2)), "edge"),
    (3, 2),
    label=" crop",
)

# ---- columns


def columns(x, kernel, dilation, padding, stride):
    view = windows(x, kernel, stride, padding, dilation)  # n c oh ow kh kw
    n, c, oh, ow, kh, kw = view.shape
    return view.transpose(0, 1, 4, 5, 2, 3).reshape(n, c * kh * kw, oh * ow)


def added(cols, size, kernel, dilation, padding, stride):
    """The adjoint of columns(), element by element."""
    n, c = cols.shape[0], cols.shape[1] // (kernel[0] * kernel[1])
    out = np.zeros((n, c, *size))
    flat = out.reshape(-1)
    where = np.arange(1.0, out.size + 1).reshape(out.shape)
    places = columns(where, kernel, dilation, padding, stride).astype(int) - 1
    kept = places >= 0  # the padding reads 0
    np.add.at(flat, places[kept], cols[kept])
    return out


for label, shape, window in [
    ("", (2, 2, 3, 4), ((2, 2), (1, 1), (0, 0), (1, 1))),
    (" all", (1, 2, 4, 5), ((2, 3), (2, 1), (1, 2), (2, 1))),
]:
    n_columns = columns(np.zeros(shape), *window).shape
    for op in ("im2col", "nn.functional.unfold"):
        case(
            op,
            lambda hf, x, a=window, op=op: (
                hf._C.ops.im2col(x, *a)
                if op == "im2col"
                else hf.nn.functional.unfold(x, *a)
            ),
            lambda x, a=window: columns(x, *a),
            shape,
            label=label,
        )
    for op in ("col2im", "nn.functional.fold"):
        case(
            op,
            lambda hf, x, s=shape[2:], a=window, op=op: (
                hf._C.ops.col2im(x, s, *a)
                if op == "col2im"
                else hf.nn.functional.fold(x, s, *a)
            ),
            lambda x, s=shape[2:], a=window: added(x, s, *a),
            n_columns,
            label=label,
        )
case(
    "nn.functional.unfold",
    lambda hf, x: hf.nn.functional.unfold(x.permute(0, 3, 2, 1), 2),
    lambda x: columns(x.transpose(0, 3, 2, 1), (2, 2), (1, 1), (0, 0), (1, 1)),
    (1, 2, 3, 2),
    label=" permuted",
)
case(
    "im2col",
    lambda hf, x: hf._C.ops.im2col(x, 2, 1, 0, 1),
    lambda x: np.zeros((0, 4, 4)),
    (0, 1, 3, 3),
    label=" empty",
    grad=(),
)

# ---- channels and pixels


def shuffled(x):
    n, c, h, w = x.shape
    out = np.zeros((n, c // 4, h * 2, w * 2))
    for i, j in np.ndindex(2, 2):
        out[:, :, i::2, j::2] = x[:, i * 2 + j :: 4]
    return out


def unshuffled(x):
    n, c, h, w = x.shape
    out = np.zeros((n, c * 4, h // 2, w // 2))
    for i, j in np.ndindex(2, 2):
        out[:, i * 2 + j :: 4] = x[:, :, i::2, j::2]
    return out


case(
    "nn.functional.pixel_shuffle",
    lambda hf, x: hf.nn.functional.pixel_shuffle(x, 2),
    shuffled,
    (2, 8, 2, 3),
)
case(
    "nn.functional.pixel_unshuffle",
    lambda hf, x: hf.nn.functional.pixel_unshuffle(x, 2),
    unshuffled,
    (2, 2, 4, 6),
)
case(
    "nn.functional.channel_shuffle",
    lambda hf, x: hf.nn.functional.channel_shuffle(x, 3),
    lambda x: x[:, [0, 2, 4, 1, 3, 5]],
    (2, 6, 2, 2),
)
