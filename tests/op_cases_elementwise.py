# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of arithmetic, comparison, casts and copies."""


import numpy as np
from op_cases import away_from, case, distinct, erf, ints, nonzero, positive


# ---- elementwise: one tensor

for op, reference, x in [
    ("neg", np.negative, (3, 4)),
    ("abs", np.abs, nonzero),
    ("relu", lambda a: np.maximum(a, 0), nonzero),
    ("exp", np.exp, (3, 4)),
    ("expm1", np.expm1, (3, 4)),
    ("log", np.log, positive),
    ("log2", np.log2, positive),
    ("log1p", np.log1p, positive),
    ("sqrt", np.sqrt, positive),
    ("rsqrt", lambda a: 1 / np.sqrt(a), positive),
    ("reciprocal", np.reciprocal, nonzero),
    ("sin", np.sin, (3, 4)),
    ("cos", np.cos, (3, 4)),
    ("tanh", np.tanh, (3, 4)),
    ("sigmoid", lambda a: 1 / (1 + np.exp(-a)), (3, 4)),
    ("erf", erf, (3, 4)),
    ("sign", np.sign, nonzero),
    ("floor", np.floor, away_from([-2, -1, 0, 1, 2], (3, 4))),
    ("ceil", np.ceil, away_from([-2, -1, 0, 1, 2], (3, 4))),
    ("round", np.round, away_from([-1.5, -0.5, 0.5, 1.5], (3, 4))),
]:

    def ours(hf, a, op=op):
        return getattr(hf, op)(a)

    case(op, ours, reference, x)
    data = x if isinstance(x, np.ndarray) else np.linspace(-2, 2, 12).reshape(x)
    # Transposed and stepped: kernels see strides.
    case(
        op,
        lambda hf, a, f=ours: f(hf, a.t()[::2]),
        lambda a, f=reference: f(a.T[::2]),
        data,
        label=" strided",
    )
    case(op, ours, reference, data.reshape(-1)[:0], grad=(), label=" empty")

special = np.array([0.0, 1.0, np.nan, np.inf, -np.inf])
for op, reference in [
    ("logical_not", np.logical_not),
    ("isnan", np.isnan),
    ("isfinite", np.isfinite),
]:
    case(op, lambda hf, a, op=op: getattr(hf, op)(a), reference, special, grad=())

# ---- elementwise: two operands

binary = [
    ("add", np.add, (3, 4), (3, 4)),
    ("sub", np.subtract, (3, 4), (3, 4)),
    ("mul", np.multiply, (3, 4), (3, 4)),
    ("div", np.divide, (3, 4), nonzero),
    ("pow", np.power, positive, (3, 4)),
    ("maximum", np.maximum, distinct((3, 4)), distinct((3, 4), 6) + 0.05),
    ("minimum", np.minimum, distinct((3, 4)), distinct((3, 4), 6) + 0.05),
    ("remainder", np.mod, distinct((3, 4)) + 0.03, np.full((3, 4), 0.7)),
]
for op, reference, a, b in binary:

    def ours(hf, a, b, op=op):
        return getattr(hf, op)(a, b)

    case(op, ours, reference, a, b, grad=(0,) if op == "remainder" else None)
    a0, b0 = (
        x if isinstance(x, np.ndarray) else np.linspace(0.3, 2, 12).reshape(x)
        for x in (a, b)
    )
    grad = (0,) if op == "remainder" else None
    case(op, ours, reference, a0, b0[0], grad=grad, label=" broadcast row")
    case(op, ours, reference, a0[:, :1], b0[:1], grad=grad, label=" broadcast both")
    case(op, ours, reference, a0, b0[:1, :1].reshape(()), grad=grad)
    case(
        op,
        lambda hf, a, f=ours: f(hf, a, 1.5),
        lambda a, f=reference: f(a, 1.5),
        np.abs(a0) + 0.013,
        label=" number",
    )
    case(
        op,
        lambda hf, a, f=ours: f(hf, 1.5, a),
        lambda a, f=reference: f(1.5, a),
        np.abs(b0) + 0.017,
        grad=() if op == "remainder" else None,
        label=" number first",
    )
case("pow", lambda hf, a: a**2, lambda a: a**2, (3, 4), label=" square")
case("pow", lambda hf, a: a**0, lambda a: a**0, (3, 4), label=" zero")

for op, reference in [
    ("eq", np.equal),
    ("ne", np.not_equal),
    ("lt", np.less),
    ("le", np.less_equal),
    ("gt", np.greater),
    ("ge", np.greater_equal),
    ("logical_and", np.logical_and),
    ("logical_or", np.logical_or),
    ("logical_xor", np.logical_xor),
    ("floor_divide", np.floor_divide),
    ("bitwise_and", np.bitwise_and),
    ("bitwise_or", np.bitwise_or),
    ("bitwise_xor", np.bitwise_xor),
]:

    def ours(hf, a, b, op=op):
        return getattr(hf, op)(a, b)

    divisor = np.where(ints((3, 4), seed=4) == 0, 2, ints((3, 4), seed=4))
    case(op, ours, reference, ints((3, 4)), divisor, grad=())
    case(op, ours, reference, ints((3, 4)), divisor[:1], grad=())
    if not op.startswith("bitwise"):
        case(op, ours, reference, nonzero, nonzero[::-1].copy(), grad=(), label=" f")

# ---- elementwise: more operands, casts, copies

mask = ints((3, 4)) > 0
case("where", lambda hf, c, a, b: hf.where(c, a, b), np.where, mask, (3, 4), (3, 4))
case("where", lambda hf, c, a, b: hf.where(c, a, b), np.where, mask, (4,), (3, 1))
case(
    "where",
    lambda hf, c, a: hf.where(c, a, 1.0),
    lambda c, a: np.where(c, a, 1.0),
    mask,
    (3, 4),
)
kinks = away_from([-0.5, 0.5], (3, 4))
case(
    "clamp",
    lambda hf, a: a.clamp(-0.5, 0.5),
    lambda a: a.clip(-0.5, 0.5),
    kinks,
)
case(
    "clamp",
    lambda hf, a: a.clamp(min=0.5),
    lambda a: a.clip(0.5),
    kinks,
    label=" min",
)
case(
    "relu_backward",
    lambda hf, g, y: hf._C.ops.relu_backward(g, y),
    lambda g, y: g * (y > 0),
    (3, 4),
    nonzero,
    grad=(0,),
)
case("to", lambda hf, a: a.float(), lambda a: a.astype(np.float32), (3, 4), grad=())
case("to", lambda hf, a: a.long(), lambda a: a.astype(np.int64), nonzero, grad=())
case("to", lambda hf, a: a.bool(), lambda a: a.astype(bool), ints((3, 4)), grad=())
case("to", lambda hf, a: a.double(), lambda a: a * 1.0, ints((3, 4)), grad=())
case(
    "to", lambda hf, a: hf._C.ops.to(a, hf.float64), lambda a: a, (3, 4), label=" same"
)
case("to_device", lambda hf, a: hf._C.ops.to_device(a.t(), 0), lambda a: a.T, (3, 4))
case("clone", lambda hf, a: a.t().clone(), lambda a: a.T, (3, 4))


def copied(hf, a):
    out = hf.zeros(3, 4, dtype=a.dtype)
    out.copy_(a)
    return out


case("copy", copied, lambda a: np.broadcast_to(a, (3, 4)), (4,))


def filled(hf, a):
    b = a * 1
    b.fill_(2.5)
    return b


case("fill", filled, lambda a: np.full_like(a, 2.5), (3, 4))
