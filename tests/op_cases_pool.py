# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of pooling of one to three dimensions: over windows, to a given
size, and back. max_pool2d's and avg_pool2d's are in op_cases_neural.py."""

import itertools

import numpy as np
from op_cases import case, distinct
from op_cases_conv import windows


def pooled(x, axes, reduce, k, s, p=0, d=1, fill=0.0):
    view = windows(x, *([v] * axes for v in (k, s, p, d)), fill)
    return reduce(view, tuple(range(-axes, 0)))


for axes, shape in [(1, (2, 2, 7)), (3, (1, 2, 4, 5, 4))]:
    for k, s, p, d in [(2, 2, 0, 1), (3, 2, 1, 1), (2, 1, 0, 2)]:
        case(
            f"nn.functional.max_pool{axes}d",
            lambda hf, x, n=axes, a=(k, s, p, d): getattr(
                hf.nn.functional, f"max_pool{n}d"
            )(x, *a),
            lambda x, n=axes, a=(k, s, p, d): pooled(x, n, np.max, *a, fill=-np.inf),
            distinct(shape),
            label=f" k={k} s={s} p={p} d={d}",
        )
        if d > 1:
            continue
        case(
            f"nn.functional.avg_pool{axes}d",
            lambda hf, x, n=axes, a=(k, s, p): getattr(
                hf.nn.functional, f"avg_pool{n}d"
            )(x, *a),
            lambda x, n=axes, a=(k, s, p): pooled(x, n, np.mean, *a),
            shape,
            label=f" k={k} s={s} p={p}",
        )
        case(
            f"nn.functional.avg_pool{axes}d",
            lambda hf, x, n=axes, a=(k, s, p): getattr(
                hf.nn.functional, f"avg_pool{n}d"
            )(x, *a, count_include_pad=False),
            lambda x, n=axes, a=(k, s, p): pooled(x, n, np.sum, *a)
            / pooled(np.ones_like(x), n, np.sum, *a),
            shape,
            label=f" k={k} s={s} p={p} without padding",
        )
for axes, shape in [(2, (1, 2, 5, 4)), (3, (1, 1, 3, 4, 3))]:
    case(
        "avg_pool2d" if axes == 2 else "nn.functional.avg_pool3d",
        lambda hf, x, n=axes: getattr(hf.nn.functional, f"avg_pool{n}d")(
            x, 3, 2, 1, divisor_override=7
        ),
        lambda x, n=axes: pooled(x, n, np.sum, 3, 2, 1) / 7,
        shape,
        label=" divisor",
    )
case(
    "nn.functional.max_pool3d",
    lambda hf, x: hf.nn.functional.max_pool3d(x.permute(0, 2, 3, 1), 2),
    lambda x: pooled(x.transpose(0, 2, 3, 1), 3, np.max, 2, 2),
    distinct((2, 2, 3, 4)),
    label=" permuted",
)


def positions(x, axes, k, s):
    """Index into the image of each window's largest element."""
    image = np.arange(np.prod(x.shape[-axes:])).reshape(x.shape[-axes:])
    places = np.broadcast_to(image, x.shape)
    values = windows(x, *([v] * axes for v in (k, s, 0, 1)))
    places = windows(places, *([v] * axes for v in (k, s, 0, 1)))
    flat = (*values.shape[:-axes], -1)
    best = values.reshape(flat).argmax(-1)[..., None]
    return np.take_along_axis(places.reshape(flat), best, -1)[..., 0]


for axes, shape in [(1, (2, 2, 7)), (2, (2, 5, 6)), (3, (1, 2, 4, 5, 4))]:
    case(
        f"nn.functional.max_pool{axes}d_with_indices",
        lambda hf, x, n=axes: getattr(hf.nn.functional, f"max_pool{n}d_with_indices")(
            x, 2
        )[1],
        lambda x, n=axes: positions(x, n, 2, 2),
        distinct(shape),
        grad=(),
    )


def unpool(hf, x, axes):
    f = hf.nn.functional
    values, at = getattr(f, f"max_pool{axes}d")(x, 2, return_indices=True)
    return getattr(f, f"max_unpool{axes}d")(
        values, at, 2, output_size=tuple(x.shape[-axes:])
    )


def unpool_reference(x, axes):
    at = positions(x, axes, 2, 2).reshape(*x.shape[:-axes], -1)
    flat = x.reshape(*x.shape[:-axes], -1)
    out = np.zeros_like(flat)
    np.put_along_axis(out, at, np.take_along_axis(flat, at, -1), -1)
    return out.reshape(x.shape)


for axes, shape in [(1, (2, 2, 5)), (2, (2, 3, 4)), (3, (1, 1, 3, 4, 2))]:
    case(
        f"nn.functional.max_unpool{axes}d",
        lambda hf, x, n=axes: unpool(hf, x, n),
        lambda x, n=axes: unpool_reference(x, n),
        distinct(shape),
    )

for axes, shape in [(1, (2, 2, 6)), (2, (2, 3, 4)), (3, (1, 1, 2, 3, 4))]:
    case(
        f"nn.functional.lp_pool{axes}d",
        lambda hf, x, n=axes: getattr(hf.nn.functional, f"lp_pool{n}d")(x, 3.0, 2, 1),
        lambda x, n=axes: pooled(x**3, n, np.sum, 2, 1) ** (1 / 3),
        np.random.default_rng(2).uniform(0.2, 2, shape),
    )

# ---- to a given size


def adaptive(x, size, reduce):
    axes = len(size)
    out = np.zeros((*x.shape[:-axes], *size))
    for at in np.ndindex(*size):
        spans = [
            slice(i * n // o, -(-(i + 1) * n // o))
            for i, n, o in zip(at, x.shape[-axes:], size)
        ]
        out[(..., *at)] = reduce(x[(..., *spans)], tuple(range(-axes, 0)))
    return out


for kind, reduce in [("avg", np.mean), ("max", np.max)]:
    for shape, size in [
        ((2, 2, 7), (3,)),
        ((2, 4), (1,)),
        ((2, 2, 5, 4), (3, 2)),
        ((2, 3, 4), (5, 1)),
        ((1, 2, 4, 6), (2, 3)),
        ((2, 2, 5), (1, 1)),
        ((1, 2, 3, 4, 5), (2, 2, 3)),
        ((2, 2, 3, 3), (1, 1, 1)),
    ]:
        name = f"adaptive_{kind}_pool{len(size)}d"
        case(
            f"nn.functional.{name}",
            lambda hf, x, f=name, s=size: getattr(hf.nn.functional, f)(x, s),
            lambda x, s=size, r=reduce: adaptive(x, s, r),
            distinct(shape),
        )
case(
    "adaptive_max_pool2d",
    lambda hf, x: hf._C.ops.adaptive_max_pool2d(x, [3, 2]),
    lambda x: adaptive(x, (3, 2), np.max),
    distinct((1, 2, 5, 3)),
)
case(
    "adaptive_max_pool2d",
    lambda hf, x: hf._C.ops.adaptive_max_pool2d(x.transpose(-1, -2), [1, 2]),
    lambda x: adaptive(x.swapaxes(-1, -2), (1, 2), np.max),
    distinct((2, 3, 3)),
    label=" transposed",
)


def fraction(x, samples, out, k=2):
    """Fractional max pooling with PyTorch's choice of windows."""
    axes, result = len(out), np.zeros((*x.shape[:2], *out))
    for n, c in np.ndindex(*x.shape[:2]):
        starts = []
        for i, (o, size) in enumerate(zip(out, x.shape[2:])):
            u, alpha = samples[n, c, 1 - i if axes == 2 else i], (size - k) / (o - 1)
            line = [int((j + u) * alpha) - int(u * alpha) for j in range(o - 1)]
            starts.append([*line, size - k])
        for at in np.ndindex(*out):
            window = [slice(s[j], s[j] + k) for s, j in zip(starts, at)]
            result[(n, c, *at)] = x[(n, c, *window)].max()
    return result


for shape, out in [((2, 2, 6, 5), (3, 2)), ((1, 2, 4, 3, 5), (2, 2, 3))]:
    case(
        f"nn.functional.fractional_max_pool{len(out)}d",
        lambda hf, x, u, o=out: getattr(
            hf.nn.functional, f"fractional_max_pool{len(o)}d"
        )(x, 2, o, _random_samples=u),
        lambda x, u, o=out: fraction(x, u, o),
        distinct(shape),
        np.random.default_rng(3).uniform(0, 1, (*shape[:2], len(out))),
        grad=(0,),
    )


def response(x, size, alpha, beta, k):
    out = np.zeros_like(x)
    channels = x.shape[1]
    for c, i in itertools.product(range(channels), range(-(size // 2), size)):
        if i <= (size - 1) // 2 and 0 <= c + i < channels:
            out[:, c] += x[:, c + i] ** 2
    return x / (k + alpha * out / size) ** beta


for shape, size in [((2, 4, 3), 3), ((1, 5, 2, 2), 2), ((2, 1, 2), 5)]:
    case(
        "nn.functional.local_response_norm",
        lambda hf, x, s=size: hf.nn.functional.local_response_norm(x, s, 0.3, 0.6, 1.5),
        lambda x, s=size: response(x, s, 0.3, 0.6, 1.5),
        shape,
        label=f" size={size}",
    )
