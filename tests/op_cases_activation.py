# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of activations, fused and composed."""

import math

import numpy as np
from op_cases import away_from, case, erf

KINKS = [-3, -1, -0.5, 0, 0.5, 1, 3, 6]


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def softplus(a, beta=1.0, threshold=20.0):
    z = a * beta
    return np.where(z > threshold, a, np.log1p(np.exp(np.minimum(z, threshold))) / beta)


def normal(a):
    return 0.5 * (1 + erf(a / math.sqrt(2)))


def gelu_tanh(a):
    return 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)))


def elu(a, alpha=1.0, scale=1.0, input_scale=1.0):
    low = np.minimum(a, 0)
    return scale * np.where(a > 0, a, alpha * np.expm1(low * input_scale))


def shrink(a, lambd=0.5):
    return np.sign(a) * np.maximum(np.abs(a) - lambd, 0)


# Name in nn.functional, arguments, reference, and the fused op behind it.
ACTIVATIONS = [
    ("gelu", (), lambda a: a * normal(a), "gelu"),
    ("gelu", ("tanh",), gelu_tanh, "gelu"),
    ("silu", (), lambda a: a * sigmoid(a), "silu"),
    ("mish", (), lambda a: a * np.tanh(softplus(a)), "mish"),
    ("softplus", (), softplus, "softplus"),
    ("softplus", (2.0, 1.5), lambda a: softplus(a, 2.0, 1.5), "softplus"),
    ("logsigmoid", (), lambda a: -softplus(-a), None),
    ("leaky_relu", (), lambda a: np.where(a > 0, a, 0.01 * a), "leaky_relu"),
    ("leaky_relu", (0.3,), lambda a: np.where(a > 0, a, 0.3 * a), "leaky_relu"),
    ("elu", (1.7,), lambda a: elu(a, 1.7), "elu"),
    ("celu", (1.7,), lambda a: elu(a, 1.7, 1.0, 1 / 1.7), None),
    ("selu", (), lambda a: elu(a, 1.6732632423543772, 1.0507009873554805), None),
    ("hardswish", (), lambda a: a * np.clip(a + 3, 0, 6) / 6, "hardswish"),
    ("hardsigmoid", (), lambda a: np.clip(a + 3, 0, 6) / 6, "hardsigmoid"),
    ("relu", (), lambda a: np.maximum(a, 0), None),
    ("relu6", (), lambda a: np.clip(a, 0, 6), None),
    ("hardtanh", (-0.5, 3.0), lambda a: np.clip(a, -0.5, 3), "hardtanh"),
    ("threshold", (1.0, -7.0), lambda a: np.where(a <= 1, -7, a), "threshold"),
    ("hardshrink", (), lambda a: np.where(np.abs(a) <= 0.5, 0, a), "hardshrink"),
    ("softshrink", (), shrink, "softshrink"),
    ("tanhshrink", (), lambda a: a - np.tanh(a), None),
    ("softsign", (), lambda a: a / (1 + np.abs(a)), "softsign"),
    ("sigmoid", (), sigmoid, None),
    ("tanh", (), np.tanh, None),
    ("rrelu", (0.1, 0.3), lambda a: np.where(a > 0, a, 0.2 * a), None),
]
wide = away_from(KINKS, (4, 6), -7, 7)
for name, args, reference, op in ACTIVATIONS:

    def ours(hf, a, name=name, args=args):
        return getattr(hf.nn.functional, name)(a, *args)

    for public in {op, f"nn.functional.{name}"} - {None}:
        label = " ".join(map(str, args))
        case(public, ours, reference, wide, label=f" {label}")
        case(
            public,
            lambda hf, a, f=ours: f(hf, a.t()[::2]),
            lambda a, f=reference: f(a.T[::2]),
            wide,
            label=f" {label} strided",
        )
        case(public, ours, reference, (0, 3), grad=(), label=f" {label} empty")
        case(public, ours, reference, wide[:1, 0].reshape(()), label=f" {label}")
    if name not in ("tanhshrink", "softsign"):  # inf / inf, inf - inf in NumPy
        with np.errstate(all="ignore"):
            case(
                f"nn.functional.{name}",
                ours,
                reference,
                np.array([0.0, np.nan, 200.0, -200.0]),
                grad=(),
                label=f" {label} special",
            )

case(
    "huber",
    lambda hf, a: hf._C.ops.huber(a, 0.7),
    lambda a: np.where(np.abs(a) < 0.7, a * a / 2, 0.7 * (np.abs(a) - 0.7 / 2)),
    wide,
)
for name, derivative, numbers in [
    ("silu", lambda a: sigmoid(a) * (1 + a * (1 - sigmoid(a))), ()),
    ("leaky_relu", lambda a: np.where(a > 0, 1, 0.2), (0.2,)),
    ("softplus", sigmoid, (1.0, 20.0)),
    ("huber", lambda a: np.clip(a, -0.7, 0.7), (0.7,)),
    ("square", lambda a: 2 * a, ()),
    ("abs", np.sign, ()),
]:
    case(
        "activation_backward",
        lambda hf, g, a, name=name, n=numbers: hf._C.ops.activation_backward(
            g, a, name, *n
        ),
        lambda g, a, f=derivative: g * f(a),
        (4, 6),
        wide,
        label=f" {name}",
    )


def halves(a, axis):
    return np.split(a, 2, axis)


for dim in (0, -1):
    case(
        "nn.functional.glu",
        lambda hf, a, d=dim: hf.nn.functional.glu(a, d),
        lambda a, d=dim: halves(a, d)[0] * sigmoid(halves(a, d)[1]),
        (4, 6),
        label=f" dim={dim}",
    )
case(
    "nn.functional.prelu",
    lambda hf, a, w: hf.nn.functional.prelu(a, w),
    lambda a, w: np.where(a > 0, a, a * w),
    wide,
    (1,),
)
case(
    "nn.functional.prelu",
    lambda hf, a, w: hf.nn.functional.prelu(a, w),
    lambda a, w: np.where(a > 0, a, a * w[:, None]),
    wide.reshape(2, 3, 4),
    (3,),
)


def softmax(a, axis):
    e = np.exp(a - a.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


for dim in (0, 1, -1):
    for name, reference in [
        ("softmax", softmax),
        ("softmin", lambda a, d: softmax(-a, d)),
        ("log_softmax", lambda a, d: np.log(softmax(a, d))),
    ]:
        case(
            f"nn.functional.{name}",
            lambda hf, a, d=dim, n=name: getattr(hf.nn.functional, n)(a, d),
            lambda a, d=dim, f=reference: f(a, d),
            (2, 3, 4),
            label=f" dim={dim}",
        )
