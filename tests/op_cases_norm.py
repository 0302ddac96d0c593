# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of normalisations."""

import numpy as np
from op_cases import case

EPS = 1e-5


def standardized(x, axes, center=True, eps=EPS):
    mean = x.mean(axes, keepdims=True) if center else 0.0
    var = ((x - mean) ** 2).mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + eps)


def channels(v, rank):
    return v.reshape((1, -1) + (1,) * (rank - 2))


def batch_reference(x, w=None, b=None):
    axes = (0,) + tuple(range(2, x.ndim))
    y = standardized(x, axes)
    y = y if w is None else y * channels(w, x.ndim)
    return y if b is None else y + channels(b, x.ndim)


def batch(hf, x, w=None, b=None):
    return hf.nn.functional.batch_norm(x, None, None, w, b, True)


for op in ("batch_norm", "nn.functional.batch_norm"):
    for shape in [(5, 3), (2, 3, 4), (2, 3, 2, 4), (2, 1, 2, 1, 3), (3, 70)]:
        case(op, batch, batch_reference, shape, (shape[1],), (shape[1],))
    case(op, batch, batch_reference, (4, 3, 5))
    case(op, batch, batch_reference, (4, 3, 5), (3,))
    case(
        op,
        lambda hf, x, w: batch(hf, x.transpose(0, 2), w),
        lambda x, w: batch_reference(x.swapaxes(0, 2), w),
        (4, 3, 5),
        (3,),
        label=" strided",
    )


def running_reference(x, w, b, mean, var):
    y = (x - channels(mean, x.ndim)) / np.sqrt(channels(var, x.ndim) + EPS)
    return y * channels(w, x.ndim) + channels(b, x.ndim)


for shape in [(5, 3), (2, 3, 4), (1, 3, 1), (0, 3, 2)]:
    case(
        "nn.functional.batch_norm",
        lambda hf, x, w, b, m, v: hf.nn.functional.batch_norm(x, m, v, w, b),
        running_reference,
        shape,
        (3,),
        (3,),
        np.array([0.3, -0.2, 1.0]),
        np.array([0.5, 2.0, 1.0]),
        grad=(0, 1, 2),
        label=" running",
    )


def batch_gradients(g, x):
    h = x.shape[0] * x.shape[2]
    y = batch_reference(x)
    rstd = 1 / np.sqrt(x.var((0, 2), keepdims=True) + EPS)
    rest = g.sum((0, 2), keepdims=True) + y * (g * y).sum((0, 2), keepdims=True)
    return rstd * (g - rest / h)


case(
    "batch_norm_backward",
    lambda hf, g, x: hf._C.ops.batch_norm_backward(
        g, x, None, x.mean((0, 2)), x.var((0, 2), unbiased=False), EPS, True
    ),
    batch_gradients,
    (3, 2, 4),
    (3, 2, 4),
    grad=(),
)


def layer_reference(dims, center=True):
    def run(x, w=None, b=None):
        y = standardized(x, tuple(range(-dims, 0)), center)
        y = y if w is None else y * w
        return y if b is None else y + b

    return run


def layer(dims):
    def run(hf, x, w=None, b=None):
        return hf.nn.functional.layer_norm(x, tuple(x.shape)[-dims:], w, b)

    return run


for op in ("group_norm", "nn.functional.layer_norm"):
    for shape, dims in [((4, 6), 1), ((2, 3, 4), 2), ((5,), 1), ((2, 3, 33), 1)]:
        case(
            op, layer(dims), layer_reference(dims), shape, shape[-dims:], shape[-dims:]
        )
    case(op, layer(1), layer_reference(1), (4, 6))
    case(op, layer(1), layer_reference(1), (0, 6), grad=(), label=" empty")
    case(
        op,
        lambda hf, x, w: layer(1)(hf, x.t(), w),
        lambda x, w: layer_reference(1)(x.T, w),
        (6, 4),
        (6,),
        label=" strided",
    )
for shape, dims in [((4, 6), 1), ((2, 3, 4), 2)]:
    case(
        "nn.functional.rms_norm",
        lambda hf, x, w, d=dims: hf.nn.functional.rms_norm(
            x, tuple(x.shape)[-d:], w, EPS
        ),
        layer_reference(dims, False),
        shape,
        shape[-dims:],
    )
case(
    "nn.functional.rms_norm",
    lambda hf, x: hf.nn.functional.rms_norm(x, 6, eps=EPS),
    layer_reference(1, False),
    (4, 6),
)


def group_reference(groups):
    def run(x, w=None, b=None):
        rows = x.reshape(x.shape[0], groups, -1)
        y = standardized(rows, (2,)).reshape(x.shape)
        y = y if w is None else y * channels(w, x.ndim)
        return y if b is None else y + channels(b, x.ndim)

    return run


def group(groups):
    def run(hf, x, w=None, b=None):
        return hf.nn.functional.group_norm(x, groups, w, b)

    return run


for op in ("group_norm", "nn.functional.group_norm"):
    for shape, groups in [((2, 4, 3), 2), ((3, 6), 3), ((2, 4, 2, 3), 4)]:
        case(op, group(groups), group_reference(groups), shape, (shape[1],), shape[1:2])
    case(op, group(1), group_reference(1), (2, 4, 3))


def group_gradient(g, x):
    n = x.shape[-1]
    y = standardized(x, (-1,))
    rstd = 1 / np.sqrt(x.var(-1, keepdims=True) + EPS)
    rest = g.sum(-1, keepdims=True) + y * (g * y).sum(-1, keepdims=True)
    return rstd * (g - rest / n)


def group_backward(hf, g, x):
    mean, rstd = hf._C.ops.group_norm(x, None, None, 1, 1, EPS)[1:]
    return hf._C.ops.group_norm_backward(g, x, None, mean, rstd, 1, 1, True)


case("group_norm_backward", group_backward, group_gradient, (3, 5), (3, 5), grad=())


def instance(hf, x, w=None, b=None):
    return hf.nn.functional.instance_norm(x, weight=w, bias=b)


def instance_reference(x, w=None, b=None):
    return group_reference(x.shape[1])(x, w, b)


for shape in [(2, 3, 4), (1, 2, 3, 2)]:
    case(
        "nn.functional.instance_norm",
        instance,
        instance_reference,
        shape,
        (shape[1],),
        (shape[1],),
    )
    case("nn.functional.instance_norm", instance, instance_reference, shape)


def with_statistics(x, axes, part, shape):
    """Of (standardized, mean, 1 / standard deviation) one, in its shape."""
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    parts = standardized(x, axes), mean, 1 / np.sqrt(var + EPS)
    return parts[part].reshape(shape)


for part in range(3):
    case(
        "native_layer_norm",
        lambda hf, x, p=part: hf.native_layer_norm(x, (3, 4), None, None, EPS)[p],
        lambda x, p=part: with_statistics(x, (1, 2), p, (2, 1, 1) if p else x.shape),
        (2, 3, 4),
        grad=() if part else None,
        label=f" {part}",
    )
    case(
        "native_group_norm",
        lambda hf, x, p=part: hf.native_group_norm(x, None, None, 2, 4, 3, 2, EPS)[p],
        lambda x, p=part: with_statistics(
            x.reshape(2, 2, 6), 2, p, (2, 2) if p else x.shape
        ),
        (2, 4, 3),
        grad=() if part else None,
        label=f" {part}",
    )
    case(
        "native_batch_norm",
        lambda hf, x, p=part: hf.native_batch_norm(
            x, None, None, None, None, True, 0.1, EPS
        )[p],
        lambda x, p=part: with_statistics(x, (0, 2), p, (3,) if p else x.shape),
        (4, 3, 2),
        grad=() if part else None,
        label=f" {part}",
    )
