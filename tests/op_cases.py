# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The one list of op cases.

A row drives the forward check against NumPy, the gradient check against finite
differences, the equality of shared memory and gRPC (test_op_cases.py), and the
micro-benchmark (benchmarks/ops.py). Every op of the table has at least one row,
which test_op_cases.py enforces.

    case("op", ours, reference, inputs..., grad=(0, 1))

`ours` gets the holdfast module and tensors, `reference` NumPy arrays of the
same values. An input is a shape (uniform in [-2, 2], float64), or an array.
A composite has rows under its public name ("logsumexp"; "nn.functional.gelu" for
what is not `holdfast.<name>`). Each family has a file op_cases_<family>.py, and
a line in all_op_cases.py.

`grad` lists the inputs to differentiate; an empty tuple: not differentiable.
"""

import dataclasses
import math

import numpy as np

CASES = []


@dataclasses.dataclass
class Case:
    op: str
    name: str
    ours: object
    reference: object
    inputs: list
    grad: tuple
    second: bool  # gradients of gradients are checked as well
    random: bool

    def arrays(self):
        rng = np.random.default_rng(abs(hash_text(self.name)) % 2**32)
        return [
            x.copy() if isinstance(x, np.ndarray) else rng.uniform(-2, 2, x)
            for x in self.inputs
        ]


def hash_text(text):
    """Equal in every process, which hash() is not."""
    value = 0
    for c in text:
        value = (value * 131 + ord(c)) % (1 << 61)
    return value


def case(op, ours, reference, *inputs, grad=None, label="", second=True, random=False):
    floats = [
        i
        for i, x in enumerate(inputs)
        if not isinstance(x, np.ndarray) or x.dtype == np.float64
    ]
    shapes = ",".join(
        str(list(x.shape if isinstance(x, np.ndarray) else x)).replace(" ", "")
        for x in inputs
    )
    name = f"{op}({shapes}){label}"
    twins = sum(c.name.split(" #")[0] == name for c in CASES)
    name += f" #{twins + 1}" if twins else ""
    grad = tuple(floats) if grad is None else tuple(grad)
    CASES.append(Case(op, name, ours, reference, list(inputs), grad, second, random))


def away_from(points, shape, low=-2, high=2, margin=0.05):
    """Values that keep clear of kinks and poles, where no derivative is."""
    rng = np.random.default_rng(17)
    x = rng.uniform(low, high, shape)
    for p in points:
        near = np.abs(x - p) < margin
        x = np.where(near, p + margin * 2, x)
    return x


def ints(shape, low=-5, high=6, seed=3):
    return np.random.default_rng(seed).integers(low, high, shape)


def distinct(shape, seed=5):
    """All different by far more than a finite difference."""
    n = int(np.prod(shape))
    return np.random.default_rng(seed).permutation(n).reshape(shape) * 0.1 - 1.0


positive = away_from([], (3, 4), 0.2, 3)
nonzero = away_from([0], (3, 4))
erf = np.vectorize(math.erf, otypes=[float])


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

# ---- creation

case("empty", lambda hf: hf.empty(2, 3) * 0 == 0, lambda: np.ones((2, 3), bool))
case("full", lambda hf: hf.full((2, 3), 7), lambda: np.full((2, 3), 7))
case("full", lambda hf: hf.full((2,), 1.5), lambda: np.full(2, 1.5), label=" float")
case("arange", lambda hf: hf.arange(5), lambda: np.arange(5))
case(
    "arange", lambda hf: hf.arange(1, 2, 0.3), lambda: np.arange(1, 2, 0.3), label=" f"
)
case("eye", lambda hf: hf.eye(3, 4), lambda: np.eye(3, 4))

# ---- random: a property in the place of values (see test_op_cases.py)


def within(low, high, integer=False):
    def check(x):
        assert x.min() >= low and x.max() < high, (x.min(), x.max())
        if not integer:
            assert abs(x.mean() - (low + high) / 2) < 0.05 * (high - low)

    return check


def normal(mean, std):
    def check(x):
        assert abs(x.mean() - mean) < 0.1 * std and abs(x.std() - std) < 0.1 * std

    return check


def permutation(x):
    assert sorted(x.tolist()) == list(range(len(x)))


def drop(x):
    kept = x != 0
    assert np.allclose(x[kept], 1 / 0.7) and abs(kept.mean() - 0.7) < 0.05


def coin(x):
    assert set(np.unique(x)) <= {0.0, 1.0} and abs(x.mean() - 0.3) < 0.05


N = 4000
for op, ours, check in [
    ("rand", lambda hf: hf.rand(N), within(0, 1)),
    ("randn", lambda hf: hf.randn(N), normal(0, 1)),
    ("randint", lambda hf: hf.randint(3, 9, (N,)), within(3, 9, True)),
    ("randperm", lambda hf: hf.randperm(100), permutation),
    ("uniform", lambda hf: hf.empty(N).uniform_(-3, 1), within(-3, 1)),
    ("normal", lambda hf: hf.empty(N).normal_(2, 3), normal(2, 3)),
    ("bernoulli", lambda hf: hf.bernoulli(hf.full((N,), 0.3)), coin),
    ("poisson", lambda hf: hf.poisson(hf.full((N,), 20.0)), normal(20, 20**0.5)),
    ("dropout", lambda hf: hf.nn.functional.dropout(hf.ones(N), 0.3), drop),
]:
    case(op, ours, check, grad=(), random=True)


def state_after_seven(hf):
    hf.manual_seed(258)
    hf.rand(7)
    return hf.get_rng_state()


case(
    "random_state",
    state_after_seven,
    lambda: np.array([2, 1, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0], "uint8"),
    grad=(),
)

# ---- reductions

for op, reference in [("sum", np.sum), ("mean", np.mean)]:
    for dim in (None, 0, -1, (0, 2)):
        for keep in (False, True):
            case(
                op,
                lambda hf, a, op=op, d=dim, k=keep: (
                    getattr(hf, op)(a)
                    if d is None
                    else getattr(hf, op)(a, dim=d, keepdim=k)
                ),
                lambda a, f=reference, d=dim, k=keep: f(
                    a, axis=d, keepdims=k and d is not None
                ),
                (2, 3, 4),
                label=f" dim={dim} keepdim={keep}",
            )
case("sum", lambda hf, a: a.sum(0), lambda a: a.sum(0), ints((3, 4)), grad=())
case("sum", lambda hf, a: a.sum(), lambda a: a.sum(), mask, grad=())
for op, reference in [("amax", np.max), ("amin", np.min)]:
    for dim in (None, 1, (0, 2)):
        case(
            op,
            lambda hf, a, op=op, d=dim: (
                getattr(hf, op)(a) if d is None else getattr(hf, op)(a, d)
            ),
            lambda a, f=reference, d=dim: f(a, axis=d),
            distinct((2, 3, 4)),
            label=f" dim={dim}",
        )
for op, reference in [("argmax", np.argmax), ("argmin", np.argmin)]:
    for dim in (None, 0, -1):
        case(
            op,
            lambda hf, a, op=op, d=dim: getattr(hf, op)(a, dim=d),
            lambda a, f=reference, d=dim: f(a, axis=d),
            distinct((2, 3, 4)),
            grad=(),
            label=f" dim={dim}",
        )
for op, reference in [("all", np.all), ("any", np.any)]:
    for dim in (None, 1):
        case(
            op,
            lambda hf, a, op=op, d=dim: (
                getattr(hf, op)(a) if d is None else getattr(hf, op)(a, d)
            ),
            lambda a, f=reference, d=dim: f(a, axis=d),
            mask,
            label=f" dim={dim}",
            grad=(),
        )
for dim in (0, 1, -1):
    case(
        "cumsum",
        lambda hf, a, d=dim: hf.cumsum(a, d),
        lambda a, d=dim: np.cumsum(a, d),
        (2, 3, 4),
        label=f" dim={dim}",
    )

# ---- views

for op, ours, reference in [
    ("view", lambda hf, a: a.view(4, -1), lambda a: a.reshape(4, -1)),
    ("permute", lambda hf, a: a.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    ("transpose", lambda hf, a: a.transpose(0, -1), lambda a: a.swapaxes(0, 2)),
    ("slice", lambda hf, a: a[:, 1:, ::2], lambda a: a[:, 1:, ::2]),
    ("select", lambda hf, a: a[1, :, -1], lambda a: a[1, :, -1]),
    ("unsqueeze", lambda hf, a: a.unsqueeze(-2), lambda a: a[:, :, None]),
    ("squeeze", lambda hf, a: a[:, :1].squeeze(), lambda a: a[:, :1].squeeze()),
    (
        "expand",
        lambda hf, a: a[:, :1].expand(2, 5, 4),
        lambda a: np.broadcast_to(a[:, :1], (2, 5, 4)),
    ),
]:
    case(op, ours, reference, (2, 3, 4))
    # What a view leads to, not only what it shows.
    case(
        op,
        lambda hf, a, f=ours: f(hf, a * 2) * 3,
        lambda a, f=reference: f(a * 2) * 3,
        (2, 3, 4),
        label=" in a chain",
    )
case("detach", lambda hf, a: a.detach(), lambda a: a, (2, 3), grad=())
case("variable_data", lambda hf, a: a.data, lambda a: a, (2, 3), grad=())
case(
    "as_strided",
    lambda hf, a: a.as_strided((3, 2), (1, 4), 1),
    lambda a: np.lib.stride_tricks.as_strided(a.reshape(-1)[1:], (3, 2), (8, 32)),
    (2, 4),
)

# ---- joining, indexing

case(
    "cat",
    lambda hf, a, b, c: hf.cat([a, b, c], 1),
    lambda *x: np.concatenate(x, 1),
    (2, 3),
    (2, 0),
    (2, 4),
)
case(
    "cat", lambda hf, a, b: hf.cat((a, b)), lambda *x: np.concatenate(x), (2, 3), (1, 3)
)
index = ints((2, 3), 0, 4)
case(
    "gather",
    lambda hf, a, i: hf.gather(a, 1, i),
    lambda a, i: np.take_along_axis(a, i, 1),
    (2, 4),
    index,
)


def scatter_reference(add):
    def run(a, i, s):
        out = a.copy()
        for r in range(i.shape[0]):
            for c in range(i.shape[1]):
                if add:
                    out[r, i[r, c]] += s[r, c]
                else:
                    out[r, i[r, c]] = s[r, c]
        return out

    return run


unique = np.array([[2, 0, 3], [1, 3, 0]])
case(
    "scatter",
    lambda hf, a, i, s: hf.scatter(a, 1, i, s),
    scatter_reference(False),
    (2, 4),
    unique,
    (2, 3),
)
case(
    "scatter_add",
    lambda hf, a, i, s: hf.scatter_add(a, 1, i, s),
    scatter_reference(True),
    (2, 4),
    index,
    (2, 3),
)
rows = np.array([2, 0, 2, 1])
case(
    "index_select",
    lambda hf, a, i: hf.index_select(a, 0, i),
    lambda a, i: a[i],
    (3, 4),
    rows,
)
case(
    "index_select",
    lambda hf, a, i: hf.index_select(a, 1, i),
    lambda a, i: a[:, i],
    (2, 3, 2),
    rows,
)


def index_add_reference(a, i, s):
    out = a.copy()
    np.add.at(out, i, s)
    return out


case(
    "index_add",
    lambda hf, a, i, s: hf.index_add(a, 0, i, s),
    index_add_reference,
    (3, 2),
    rows,
    (4, 2),
)
case("flip", lambda hf, a: hf.flip(a, (0, 2)), lambda a: a[::-1, :, ::-1], (2, 3, 4))
for op in ("tril", "triu"):
    for k in (-1, 0, 1):
        case(
            op,
            lambda hf, a, op=op, k=k: getattr(hf, op)(a, k),
            lambda a, op=op, k=k: getattr(np, op)(a, k),
            (2, 3, 4),
            label=f" diagonal={k}",
        )
case(
    "constant_pad",
    lambda hf, a: hf._C.ops.constant_pad(a, [1, 2, 0, 1], 9.0),
    lambda a: np.pad(a, ((0, 1), (1, 2)), constant_values=9.0),
    (2, 3),
)
case(
    "constant_pad",
    lambda hf, a: hf._C.ops.constant_pad(a, [-1, 1]),
    lambda a: np.pad(a[:, 1:], ((0, 0), (0, 1))),
    (2, 3),
    label=" crop",
)


def slice_backward_reference(g):
    out = np.zeros((3, 5))
    out[:, 1:5:2] = g
    return out


case(
    "slice_backward",
    lambda hf, g: hf._C.ops.slice_backward(g, [3, 5], 1, 1, 2),
    slice_backward_reference,
    (3, 2),
)


def select_backward_reference(g):
    out = np.zeros((3, 5))
    out[1] = g
    return out


case(
    "select_backward",
    lambda hf, g: hf._C.ops.select_backward(g, [3, 5], 0, 1),
    select_backward_reference,
    (5,),
)
