# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of creation and of composites of elementwise ops."""

import numpy as np
import scipy.special as sp
from op_cases import case, nonzero, positive
from op_cases_random import N, normal, within

# ---- creation

for name, number in [("zeros", 0.0), ("ones", 1.0)]:
    case(
        name,
        lambda hf, f=name: getattr(hf, f)(2, 3),
        lambda v=number: np.full((2, 3), v),
    )
    case(
        f"{name}_like",
        lambda hf, a, f=name: getattr(hf, f + "_like")(a.t()),
        lambda a, v=number: np.full_like(a.T, v),
        (2, 3),
        grad=(),
    )
case(
    "full_like",
    lambda hf, a: hf.full_like(a, 2.5),
    lambda a: np.full_like(a, 2.5),
    (2, 3),
    grad=(),
)
case(
    "empty_like",
    lambda hf, a: hf.empty_like(a).fill_(3),
    lambda a: np.full_like(a, 3),
    (2, 0, 3),
    grad=(),
)
case("scalar_tensor", lambda hf: hf.scalar_tensor(2.5), lambda: np.array(2.5))
for count in (0, 1, 2, 7):
    case(
        "linspace",
        lambda hf, n=count: hf.linspace(-1, 2, n),
        lambda n=count: np.linspace(-1, 2, n),
        label=f" {count}",
    )
    case(
        "logspace",
        lambda hf, n=count: hf.logspace(-1, 2, n, 3.0),
        lambda n=count: np.logspace(-1, 2, n, base=3.0),
        label=f" {count}",
    )

# ---- three tensors

for op, reference in [
    ("addcmul", lambda a, b, c: a + 0.5 * b * c),
    ("addcdiv", lambda a, b, c: a + 0.5 * b / c),
]:
    case(
        op,
        lambda hf, a, b, c, op=op: getattr(hf, op)(a, b, c, value=0.5),
        reference,
        (3, 4),
        (3, 1),
        nonzero,
    )
case(
    "lerp",
    lambda hf, a, b: hf.lerp(a, b, 0.3),
    lambda a, b: a + 0.3 * (b - a),
    (3, 4),
    (4,),
)

# ---- two tensors

case(
    "rsub",
    lambda hf, a, b: hf.rsub(a, b, alpha=2),
    lambda a, b: b - 2 * a,
    (3, 4),
    (4,),
)
close = np.array([0.0, 1.0, np.nan, np.inf, 1e5])
case(
    "isclose",
    lambda hf, a, b: hf.isclose(a, b, equal_nan=True),
    lambda a, b: np.isclose(a, b, equal_nan=True),
    close,
    np.array([0.1, 1.0 + 1e-6, np.nan, np.inf, 1e5 + 0.5]),
    grad=(),
)

# ---- complex numbers that are real

for op in ("resolve_conj", "conj_physical", "adjoint"):
    case(
        op,
        lambda hf, a, op=op: getattr(hf, op)(a),
        lambda a, op=op: a.swapaxes(-1, -2) if op == "adjoint" else a,
        (2, 3, 4),
    )
case("isreal", lambda hf, a: hf.isreal(a), np.isreal, (3, 4), grad=())
case("angle", lambda hf, a: hf.angle(a), np.angle, nonzero, grad=())
case(
    "linalg.eigvals",
    lambda hf, a: hf.linalg.eigvals(a).real.sort().values,
    lambda a: np.sort(np.linalg.eigvals(a).real),
    np.random.default_rng(4).uniform(-1, 1, (2, 4, 4)),
    grad=(),
)

# ---- activations in place

for name, args, reference in [
    ("relu_", (), lambda a: np.maximum(a, 0)),
    ("celu_", (1.3,), lambda a: np.where(a > 0, a, 1.3 * np.expm1(a / 1.3))),
    ("elu_", (1.3,), lambda a: np.where(a > 0, a, 1.3 * np.expm1(a))),
    (
        "selu_",
        (),
        lambda a: 1.0507009873554805
        * np.where(a > 0, a, 1.6732632423543772 * np.expm1(a)),
    ),
    ("leaky_relu_", (0.2,), lambda a: np.where(a > 0, a, 0.2 * a)),
    ("hardtanh_", (-0.7, 1.1), lambda a: a.clip(-0.7, 1.1)),
    ("threshold_", (0.51, 3.0), lambda a: np.where(a > 0.51, a, 3.0)),
    ("rrelu_", (0.2, 0.4), lambda a: np.where(a > 0, a, 0.3 * a)),
]:

    def inplace(hf, a, name=name, args=args):
        b = a * 1
        assert getattr(hf.nn.functional, name)(b, *args) is b
        return b

    case(f"nn.functional.{name}", inplace, reference, nonzero)

# ---- resizing, by old names


def nearest(a, scale):
    return a.repeat(scale, -1).repeat(scale, -2)


for name, arguments in [
    ("upsample", {"scale_factor": 2, "mode": "nearest"}),
    ("upsample_nearest", {"scale_factor": 2}),
]:
    case(
        f"nn.functional.{name}",
        lambda hf, a, n=name, k=arguments: getattr(hf.nn.functional, n)(a, **k),
        lambda a: nearest(a, 2),
        (1, 2, 3, 2),
    )
case(
    "nn.functional.upsample_bilinear",
    lambda hf, a: hf.nn.functional.upsample_bilinear(a, size=(1, 3)),
    lambda a: np.stack([a[..., 0], a.mean(-1), a[..., 1]], -1),
    (1, 2, 1, 2),
)
for rank, window in [(1, (2,)), (2, (2, 2)), (3, (2, 2, 2))]:
    case(
        f"nn.functional.adaptive_max_pool{rank}d_with_indices",
        lambda hf, a, r=rank: getattr(
            hf.nn.functional, f"adaptive_max_pool{r}d_with_indices"
        )(a, (1,) * r)[1],
        lambda a, r=rank: a.reshape(2, 3, -1).argmax(-1).reshape((2, 3) + (1,) * r),
        np.random.default_rng(9)
        .permutation(6 * 4**rank)
        .reshape((2, 3) + (4,) * rank)
        * 0.1,
        grad=(),
    )

# ---- random: a property in the place of values


def scaled(keep, p):
    """Elements or whole channels that were kept are scaled."""

    def check(x):
        kept = x != 0
        np.testing.assert_allclose(x[kept], 1 / (1 - p), 1e-5)
        rows = kept.reshape(keep, -1)
        assert (rows.all(1) | ~rows.any(1)).all()
        assert abs(rows[:, 0].mean() - (1 - p)) < 0.06

    return check


def chosen(x):
    assert set(np.unique(x)) == {1, 2} and abs((x == 2).mean() - 0.75) < 0.05


def events(x):
    assert abs(x.mean() - 3) < 0.2 and abs(x.var() - 3) < 0.4


def one_of(x):
    assert ((x == 0) | (x == 1)).all() and (x.sum(-1) == 1).all()


def unit(x):
    assert abs(x.mean()) < 0.1 and abs(x.std() - 1) < 0.1


for op, ours, check in [
    ("rand_like", lambda hf: hf.rand_like(hf.empty(N)), within(0, 1)),
    ("randn_like", lambda hf: hf.randn_like(hf.empty(N)), normal(0, 1)),
    (
        "randint_like",
        lambda hf: hf.randint_like(hf.empty(N), 3, 9),
        within(3, 9, True),
    ),
    (
        "multinomial",
        lambda hf: hf.multinomial(hf.tensor([0.0, 1.0, 3.0]), N, True),
        chosen,
    ),
    ("poisson", lambda hf: hf.poisson(hf.full((N,), 3.0)), events),
    (
        "nn.functional.dropout1d",
        lambda hf: hf.nn.functional.dropout1d(hf.ones(20, 50, 4), 0.3),
        scaled(1000, 0.3),
    ),
    (
        "nn.functional.dropout2d",
        lambda hf: hf.nn.functional.dropout2d(hf.ones(20, 50, 4, 2), 0.3),
        scaled(1000, 0.3),
    ),
    (
        "nn.functional.dropout3d",
        lambda hf: hf.nn.functional.dropout3d(hf.ones(20, 50, 2, 2, 2), 0.3),
        scaled(1000, 0.3),
    ),
    (
        "nn.functional.alpha_dropout",
        lambda hf: hf.nn.functional.alpha_dropout(hf.randn(N), 0.3, True),
        unit,
    ),
    (
        "nn.functional.feature_alpha_dropout",
        lambda hf: hf.nn.functional.feature_alpha_dropout(
            hf.randn(200, 40, 1), 0.3, True
        ),
        unit,
    ),
    (
        "nn.functional.gumbel_softmax",
        lambda hf: hf.nn.functional.gumbel_softmax(hf.zeros(50, 4), hard=True),
        one_of,
    ),
]:
    case(op, ours, check, grad=(), random=True)

case(
    "logit",
    lambda hf, a: hf.logit(a * 0.3, 1e-3),
    lambda a: np.log(a * 0.3 / (1 - a * 0.3)),
    positive,
)


# ---- older names

case("ger", lambda hf, a, b: hf.ger(a, b), np.outer, (3,), (4,))
case(
    "row_stack",
    lambda hf, a, b: hf.row_stack([a, b]),
    lambda *x: np.vstack(x),
    (3,),
    (2, 3),
)
case(
    "matrix_rank",
    lambda hf, a: hf.matrix_rank(a),
    np.linalg.matrix_rank,
    np.outer([1.0, 2.0, 3.0], [1.0, -1.0]),
    grad=(),
)
case(
    "multigammaln",
    lambda hf, a: hf.multigammaln(a + 2, 2),
    np.vectorize(lambda a: sp.multigammaln(a + 2, 2)),
    positive,
)
for rank in (2, 3):
    case(
        f"nn.functional.fractional_max_pool{rank}d_with_indices",
        lambda hf, a, r=rank: getattr(
            hf.nn.functional, f"fractional_max_pool{r}d_with_indices"
        )(a, (4,) * r, output_size=(1,) * r)[1],
        lambda a, r=rank: a.reshape(2, 3, -1).argmax(-1).reshape((2, 3) + (1,) * r),
        np.random.default_rng(9)
        .permutation(6 * 4**rank)
        .reshape((2, 3) + (4,) * rank)
        * 0.1,
        grad=(),
    )

# ---- attention


def attended(x, w, b, o):
    """Self-attention of x [L, N, E] with two heads."""
    length, batch, width = x.shape
    q, k, v = np.split(x @ w.T + b, 3, -1)
    result = np.empty_like(x)
    for n in range(batch):
        for part in np.split(np.arange(width), 2):
            scores = q[:, n, part] @ k[:, n, part].T / np.sqrt(len(part))
            e = np.exp(scores - scores.max(-1, keepdims=True))
            result[:, n, part] = e / e.sum(-1, keepdims=True) @ v[:, n, part]
    return result @ o.T


case(
    "nn.functional.multi_head_attention_forward",
    lambda hf, x, w, b, o: hf.nn.functional.multi_head_attention_forward(
        x, x, x, 4, 2, w, b, None, None, False, 0.0, o, None
    )[0],
    attended,
    (3, 2, 4),
    (12, 4),
    (12,),
    (4, 4),
)
