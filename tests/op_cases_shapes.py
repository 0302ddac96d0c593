# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Op cases of shape functions."""

import itertools

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from op_cases import case, ints


def method(op, *args, **kwargs):
    return lambda hf, a: getattr(a, op)(*args, **kwargs)


def function(op, *args, **kwargs):
    return lambda hf, *x: getattr(hf, op)(*x, *args, **kwargs)


def windows(a, dim, size, step):
    every = sliding_window_view(a, size, axis=dim)
    return every[(slice(None),) * dim + (slice(None, None, step),)]


# ---- views that strides describe

for ours, reference, shape in [
    (method("as_strided", (2, 3), (1, 1)), (2, 3, 8, 8, 0), (2, 4)),
    (method("as_strided", (2, 2), (3, 2), 1), (2, 2, 24, 16, 8), (3, 3)),
    (method("as_strided", (4, 3), (0, 2), 1), (4, 3, 0, 16, 8), (7,)),
]:
    case(
        "as_strided",
        ours,
        lambda a, r=reference: as_strided(a.reshape(-1)[r[4] // 8 :], r[:2], r[2:4]),
        shape,
        label=" overlapping",
    )
case(
    "as_strided",
    lambda hf, a: (a[1:, 1:].t().contiguous() * 1)[1:].as_strided((2, 2), (1, 2)),
    lambda a: as_strided(
        np.ascontiguousarray(a[1:, 1:].T).reshape(-1)[2:], (2, 2), (8, 16)
    ),
    (3, 4),
    label=" of a part",
)
case(
    "as_strided",
    lambda hf, a: a.expand(3, 4).as_strided((2, 3), (0, 1)) * 2,
    lambda a: np.broadcast_to(a[:3], (2, 3)) * 2,
    (4,),
    label=" of an expanded",
)
case("as_strided", method("as_strided", (0, 2), (1, 1)), lambda a: a[:0, :2], (3, 4))


def strided_scatter(size, stride, offset):
    def reference(a, b):
        a = np.array(a)
        as_strided(a.reshape(-1)[offset:], size, [8 * s for s in stride])[...] = b
        return a

    return reference


for size, stride, offset, shape in [
    ((2, 2), (1, 2), 0, (3, 3)),
    ((2, 3), (6, 2), 1, (2, 6)),
    ((3,), (5,), 2, (4, 4)),
    ((), (), 3, (2, 3)),
    ((0, 2), (1, 1), 0, (2, 3)),
]:
    case(
        "as_strided_scatter",
        lambda hf, a, b, g=(size, stride, offset): hf.as_strided_scatter(a, b, *g),
        strided_scatter(size, stride, offset),
        shape,
        size,
    )

for offset, dims, shape in [
    (0, (0, 1), (3, 4)),
    (1, (0, 1), (3, 4)),
    (-1, (1, 0), (3, 4)),
    (2, (-1, 0), (3, 2, 4)),
    (-2, (1, 2), (2, 3, 3)),
    (9, (0, 1), (3, 4)),
]:
    case(
        "diagonal",
        function("diagonal", offset, *dims),
        lambda a, o=offset, d=dims: np.diagonal(a, o, *d),
        shape,
        label=f" offset={offset} dims={dims}",
    )
for dim, size, step, shape in [
    (0, 3, 1, (7,)),
    (1, 2, 2, (2, 5, 2)),
    (0, 2, 3, (6, 2)),
]:
    case(
        "unfold",
        lambda hf, a, k=(dim, size, step): a.unfold(*k),
        lambda a, k=(dim, size, step): windows(a, *k),
        shape,
        label=f" {size} by {step}",
    )

# ---- in-place changes of shape


def reshaped(op, *args):
    def run(hf, a):
        b = a * 2
        assert getattr(b, op)(*args) is b
        return b * 3

    return run


for op, ours, reference, shape in [
    ("squeeze", reshaped("squeeze_"), lambda a: a.squeeze() * 6, (2, 1, 3)),
    ("squeeze", reshaped("squeeze_", 1), lambda a: a[:, 0] * 6, (2, 1, 3)),
    ("unsqueeze", reshaped("unsqueeze_", -1), lambda a: a[..., None] * 6, (2, 3)),
    ("transpose", reshaped("transpose_", 0, 1), lambda a: a.T * 6, (2, 3)),
    ("swapaxes", reshaped("swapaxes_", 0, 1), lambda a: a.T * 6, (2, 3)),
    ("t", reshaped("t_"), lambda a: a.T * 6, (2, 3)),
]:
    case(op, ours, reference, shape, label=" in place")

# ---- copies with another tensor in a part


def with_part(key):
    def run(a, s):
        a = a.copy()
        a[key] = s
        return a

    return run


case(
    "slice_scatter",
    function("slice_scatter", 1, 1, None, 2),
    with_part((slice(None), slice(1, None, 2))),
    (2, 5),
    (2, 2),
)
case(
    "slice_scatter",
    function("slice_scatter", 0, -2),
    with_part(slice(-2, None)),
    (4, 2),
    (2, 2),
)
case("select_scatter", function("select_scatter", 0, -1), with_part(-1), (3, 2), (2,))
case(
    "select_scatter",
    function("select_scatter", 1, 1),
    with_part((slice(None), 1)),
    (3, 2),
    (3,),
)


def diagonal_scatter(a, s):
    a = a.copy()
    for i, x in enumerate(s):
        a[i, i + 1] = x
    return a


case(
    "diagonal_scatter", function("diagonal_scatter", 1), diagonal_scatter, (3, 4), (3,)
)

# ---- diagonals as matrices


def embed(a, offset):
    return np.stack([np.diag(row, offset) for row in a])


for offset in (0, 2, -1):
    case(
        "diag_embed",
        function("diag_embed", offset),
        lambda a, o=offset: embed(a, o),
        (2, 3),
        label=f" offset={offset}",
    )
    for shape in ((3,), (3, 4)):
        case(
            "diag",
            function("diag", offset),
            lambda a, o=offset: np.diag(a, o),
            shape,
            label=f" offset={offset}",
        )
case(
    "diag_embed",
    function("diag_embed", 1, 0, -1),
    lambda a: embed(a, 1).transpose(1, 0, 2),
    (2, 3),
    label=" dims",
)
case("diagflat", function("diagflat", 1), lambda a: np.diagflat(a, 1), (2, 2))
case(
    "block_diag",
    lambda hf, a, b, c: hf.block_diag(a, b, c),
    lambda a, b, c: np.block(
        [
            [a, np.zeros((2, 4))],
            [np.zeros((1, 3)), b[None], np.zeros((1, 1))],
            [np.zeros((1, 6)), c.reshape(1, 1)],
        ]
    ),
    (2, 3),
    (3,),
    (),
)
for op, mask in [("tril", np.tri), ("triu", lambda n, m, k: 1 - np.tri(n, m, k - 1))]:
    for k in (0, 1, -2):
        case(
            f"{op}_indices",
            lambda hf, op=op, k=k: getattr(hf, f"{op}_indices")(3, 4, k),
            lambda mask=mask, k=k: np.array(np.nonzero(mask(3, 4, k))),
            label=f" offset={k}",
        )


def tril_inplace(hf, a):
    b = a * 2
    b.tril_(-1)
    return b


case("tril", tril_inplace, lambda a: np.tril(a * 2, -1), (3, 3), label=" in place")

# ---- turning, ranks, stacking, splitting

for k in (1, 2, 3, -1, 4):
    case("rot90", function("rot90", k), lambda a, k=k: np.rot90(a, k), (2, 3))
case(
    "rot90",
    function("rot90", 1, (2, 0)),
    lambda a: np.rot90(a, 1, (2, 0)),
    (2, 3, 4),
    label=" dims",
)
for rank in (1, 2, 3):
    for shape in ((), (2,), (2, 3)):
        op = f"atleast_{rank}d"
        case(op, function(op), lambda a, op=op: getattr(np, op)(a), shape)
for shapes in ([(2,), (2,)], [(2, 3), (2, 3)], [(2, 3, 1), (2, 3, 2)]):
    for op in ("dstack", "column_stack", "hstack", "vstack"):
        axis = {"dstack": 2, "vstack": 0}.get(op, 1)
        if len(shapes[0]) == 3 and axis != 2:
            continue
        case(
            op,
            lambda hf, a, b, op=op: getattr(hf, op)((a, b)),
            lambda a, b, op=op: getattr(np, op)((a, b)),
            *shapes,
        )
for op, shape in [("hsplit", (4,)), ("hsplit", (2, 4)), ("vsplit", (4, 2))]:
    case(
        op,
        lambda hf, a, op=op: getattr(hf, op)(a, [1, 3])[1],
        lambda a, op=op: getattr(np, op)(a, [1, 3])[1],
        shape,
    )
case("dsplit", lambda hf, a: a.dsplit(2)[1], lambda a: np.dsplit(a, 2)[1], (2, 1, 4))
case(
    "split_with_sizes",
    lambda hf, a: hf.split_with_sizes(a, [1, 3], 1)[1],
    lambda a: a[:, 1:],
    (2, 4),
)
case("narrow_copy", function("narrow_copy", 1, 1, 2), lambda a: a[:, 1:3], (2, 4))
case("roll", function("roll", 2, 1), lambda a: np.roll(a, 2, 1), (2, 5))
case("roll", function("roll", -7), lambda a: np.roll(a, -7), (2, 5), label=" flat")
case(
    "roll",
    function("roll", (1, -1), (0, 1)),
    lambda a: np.roll(a, (1, -1), (0, 1)),
    (2, 5),
    label=" dims",
)

# ---- repeating, combining

times = np.array([2, 0, 3])
case(
    "repeat_interleave",
    lambda hf, a, n: hf.repeat_interleave(a, n, 1),
    lambda a, n: np.repeat(a, n, 1),
    (2, 3),
    times,
)
case(
    "repeat_interleave",
    lambda hf, a, n: a.repeat_interleave(n, output_size=5),
    lambda a, n: np.repeat(a, n),
    (3,),
    times,
    label=" output_size",
)
case(
    "repeat_interleave",
    lambda hf, a: a.repeat_interleave(2, 0),
    lambda a: np.repeat(a, 2, 0),
    (2, 3),
    label=" number",
)
case(
    "repeat_interleave",
    lambda hf, n: hf.repeat_interleave(n),
    lambda n: np.repeat(np.arange(3), n),
    times,
)
case(
    "cartesian_prod",
    lambda hf, a, b: hf.cartesian_prod(a, b),
    lambda a, b: np.array(list(itertools.product(a, b))),
    (2,),
    (3,),
)
for r, again in [(2, False), (3, False), (2, True)]:
    pick = itertools.combinations_with_replacement if again else itertools.combinations
    case(
        "combinations",
        lambda hf, a, r=r, again=again: hf.combinations(a, r, again),
        lambda a, r=r, pick=pick: np.array(list(pick(a, r))),
        (4,),
        label=f" r={r} {again}",
    )
case("tile", lambda hf, a: a.tile(2), lambda a: np.tile(a, 2), ints((2, 3)), grad=())
case("tile", lambda hf, a: a.tile(2, 1, 3), lambda a: np.tile(a, (2, 1, 3)), (2, 3))
case(
    "meshgrid",
    lambda hf, a, b: hf.stack(hf.meshgrid(a, b, indexing="xy")),
    lambda a, b: np.stack(np.meshgrid(a, b)),
    (2,),
    (3,),
)
