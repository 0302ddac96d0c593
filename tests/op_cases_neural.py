# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of networks: products, convolution, pooling, losses, steps.

The second half of the list in op_cases.py, which says what a row is.
"""

import numpy as np
from op_cases import CASES, case, distinct  # noqa: F401

# ---- matrix products

for a, b in [
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4,), (4, 5)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 2)),
]:
    case("matmul", lambda hf, a, b: a @ b, np.matmul, a, b)
case("matmul", lambda hf, a, b: a.t() @ b.t(), lambda a, b: a.T @ b.T, (4, 3), (5, 4))


def linear(hf, x, w, b=None):
    return hf.nn.functional.linear(x, w, b)


case("linear", linear, lambda x, w: x @ w.T, (3, 4), (5, 4))
case("linear", linear, lambda x, w, b: x @ w.T + b, (2, 3, 4), (5, 4), (5,))

# ---- convolution, pooling


def conv_reference(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    n, c, h, width = x.shape
    o, cg, kh, kw = w.shape
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    oh = (h + 2 * padding - dilation * (kh - 1) - 1) // stride + 1
    ow = (width + 2 * padding - dilation * (kw - 1) - 1) // stride + 1
    out = np.zeros((n, o, oh, ow))
    for g in range(groups):
        for oc in range(g * o // groups, (g + 1) * o // groups):
            for i in range(kh):
                for j in range(kw):
                    y, z = i * dilation, j * dilation
                    patch = x[
                        :,
                        g * cg : (g + 1) * cg,
                        y : y + stride * (oh - 1) + 1 : stride,
                        z : z + stride * (ow - 1) + 1 : stride,
                    ]
                    out[:, oc] += np.einsum("nchw,c->nhw", patch, w[oc, :, i, j])
    return out if b is None else out + b[:, None, None]


for label, kwargs, x, w in [
    ("", {}, (2, 3, 5, 5), (4, 3, 3, 3)),
    (" stride padding", dict(stride=2, padding=1), (2, 3, 5, 6), (4, 3, 3, 2)),
    (" dilation", dict(dilation=2), (1, 2, 6, 6), (2, 2, 2, 3)),
    (" groups", dict(groups=2, padding=1), (2, 4, 4, 4), (6, 2, 3, 3)),
    (" depthwise", dict(groups=3), (1, 3, 4, 4), (3, 1, 2, 2)),
    (" 1x1", {}, (2, 3, 4, 4), (5, 3, 1, 1)),
]:
    case(
        "conv2d",
        lambda hf, x, w, b, k=kwargs: hf.nn.functional.conv2d(x, w, b, **k),
        lambda x, w, b, k=kwargs: conv_reference(x, w, b, **k),
        x,
        w,
        (w[0],),
        label=label,
    )


def input_gradient(hf, g, w):
    return hf._C.ops.conv2d_backward_input(g, w, [1, 2, 4, 4], 1, 1, 1, 1)


def input_gradient_reference(g, w):
    flipped = w[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    return conv_reference(g, flipped, padding=1)


case(
    "conv2d_backward_input",
    input_gradient,
    input_gradient_reference,
    (1, 3, 4, 4),
    (3, 2, 3, 3),
)
case(
    "conv2d_backward_weight",
    lambda hf, g, x: hf._C.ops.conv2d_backward_weight(g, x, [3, 2, 3, 3], 1, 0, 1, 1),
    lambda g, x: conv_reference(
        x.transpose(1, 0, 2, 3), g.transpose(1, 0, 2, 3)
    ).transpose(1, 0, 2, 3),
    (2, 3, 2, 2),
    (2, 2, 4, 4),
)


def windows(x, k, s, p, fill):
    x = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)), constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, (k, k), (2, 3))
    return view[:, :, ::s, ::s]


for k, s, p in [(2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 3, 0)]:
    case(
        "max_pool2d",
        lambda hf, x, a=(k, s, p): hf.nn.functional.max_pool2d(x, *a),
        lambda x, a=(k, s, p): windows(x, *a, -np.inf).max((-1, -2)),
        distinct((2, 3, 7, 8)),
        label=f" k={k} s={s} p={p}",
    )
    case(
        "avg_pool2d",
        lambda hf, x, a=(k, s, p): hf.nn.functional.avg_pool2d(x, *a),
        lambda x, a=(k, s, p): windows(x, *a, 0).mean((-1, -2)),
        (2, 3, 7, 8),
        label=f" k={k} s={s} p={p}",
    )
spots = np.array([[[[0, 5], [15, 5]]]])
case(
    "max_pool2d_gather",
    lambda hf, x, i: hf._C.ops.max_pool2d_gather(x, i),
    lambda x, i: x.reshape(-1)[i],
    (1, 1, 4, 4),
    spots,
)


def unpool_reference(g, i):
    out = np.zeros(16)
    np.add.at(out, i.reshape(-1), g.reshape(-1))
    return out.reshape(1, 1, 4, 4)


case(
    "max_pool2d_backward",
    lambda hf, g, i: hf._C.ops.max_pool2d_backward(g, i, [1, 1, 4, 4]),
    unpool_reference,
    (1, 1, 2, 2),
    spots,
)
case(
    "avg_pool2d_backward",
    lambda hf, g: hf._C.ops.avg_pool2d_backward(g, [1, 2, 4, 4], 2, 2, 0, False, True),
    lambda g: g.repeat(2, 2).repeat(2, 3) / 4,
    (1, 2, 2, 2),
)

# ---- softmax, losses


def softmax(a, dim):
    e = np.exp(a - a.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


for dim in (0, 1, -1):
    case(
        "softmax",
        lambda hf, a, d=dim: hf.softmax(a, d),
        lambda a, d=dim: softmax(a, d),
        (2, 3, 4),
        label=f" dim={dim}",
    )
    case(
        "log_softmax",
        lambda hf, a, d=dim: hf.log_softmax(a, d),
        lambda a, d=dim: np.log(softmax(a, d)),
        (2, 3, 4),
        label=f" dim={dim}",
    )
case(
    "softmax_backward",
    lambda hf, g, y: hf._C.ops.softmax_backward(g, y, 1),
    lambda g, y: y * (g - (g * y).sum(1, keepdims=True)),
    (3, 4),
    (3, 4),
)
case(
    "log_softmax_backward",
    lambda hf, g, y: hf._C.ops.log_softmax_backward(g, y, 1),
    lambda g, y: g - np.exp(y) * g.sum(1, keepdims=True),
    (3, 4),
    (3, 4),
)
target = np.array([1, 0, 3, 3])
class_weight = np.array([0.5, 1.0, 2.0, 0.25])


def nll_reference(reduction, ignore=-100):
    def run(x, t):
        w = class_weight[t] * (t != ignore)
        loss = -w * x[np.arange(len(t)), t]
        if reduction == "none":
            return loss
        return loss.sum() / (w.sum() if reduction == "mean" else 1)

    return run


for reduction in ("none", "sum", "mean"):
    for ignore in (-100, 3):
        case(
            "nll_loss",
            lambda hf, x, t, r=reduction, i=ignore: hf.nn.functional.nll_loss(
                x,
                t,
                hf.tensor(class_weight.tolist(), dtype=x.dtype),
                reduction=r,
                ignore_index=i,
            ),
            nll_reference(reduction, ignore),
            (4, 4),
            target,
            label=f" {reduction} ignore={ignore}",
        )


def nll_gradient_reference(g, t):
    out = np.zeros((4, 4))
    out[np.arange(4), t] = -g / 4
    return out


case(
    "nll_loss_backward",
    lambda hf, g, t: hf._C.ops.nll_loss_backward(
        g, t, None, hf.tensor(4.0, dtype=g.dtype), [4, 4], "mean", -100
    ),
    nll_gradient_reference,
    np.array(1.5),
    target,
)

# ---- optimizer steps


def sgd_step(hf, p, g, m):
    params, buffers = [p.clone()], [m.clone()]
    hf._C.ops.sgd(params, [g], buffers, lr=0.1, momentum=0.9, weight_decay=0.01)
    return hf.cat([params[0], buffers[0]])


def sgd_reference(p, g, m):
    m = 0.9 * m + g + 0.01 * p
    return np.concatenate([p - 0.1 * m, m])


case("sgd", sgd_step, sgd_reference, (3, 4), (3, 4), (3, 4), grad=())


def adam_step(hf, p, g):
    params = [p.clone()]
    first, second = [hf.zeros_like(p)], [hf.zeros_like(p)]
    for step in (1, 2):
        hf._C.ops.adam(params, [g], first, second, lr=0.1, step=step)
    return params[0]


def adam_reference(p, g):
    m, v = np.zeros_like(p), np.zeros_like(p)
    for step in (1, 2):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        denominator = np.sqrt(v / (1 - 0.999**step)) + 1e-8
        p = p - 0.1 * (m / (1 - 0.9**step)) / denominator
    return p


case("adam", adam_step, adam_reference, (3, 4), (3, 4), grad=())


def rmsprop_step(hf, p, g):
    p, square = p.clone(), hf.zeros_like(p)
    lists = [p], [g], [square], [g], [g]
    hf._C.ops.optimizer_step(
        *lists, algorithm="rmsprop", step_size=0.1, beta1=0.9, eps=1e-3
    )
    return p


case(
    "optimizer_step",
    rmsprop_step,
    lambda p, g: p - 0.1 * g / (np.sqrt(0.1 * g * g) + 1e-3),
    (3, 4),
    (3, 4),
    grad=(),
)
