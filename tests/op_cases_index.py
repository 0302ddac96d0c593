# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Op cases of masks and indexing."""

import numpy as np
from op_cases import case, ints

# ---- masks: what they choose

mask = ints((3, 4), seed=8) > 0
some = np.array([True, False, True])

for op, ours, reference, inputs in [
    ("nonzero", lambda hf, a: hf.nonzero(a), np.argwhere, [ints((3, 4), -1, 2)]),
    ("nonzero", lambda hf, a: hf.nonzero(a.t()), lambda a: np.argwhere(a.T), [mask]),
    ("nonzero", lambda hf, a: hf.nonzero(a), np.argwhere, [mask[0, :0]]),
    ("nonzero", lambda hf, a: hf.nonzero(a), np.argwhere, [ints((2, 3, 1, 2), 0, 2)]),
    ("nonzero", lambda hf, a: hf.nonzero(a), np.argwhere, [np.array(3.0)]),
    (
        "argwhere",
        lambda hf, a: hf.argwhere(a)[:, 1],
        lambda a: np.argwhere(a)[:, 1],
        [mask],
    ),
]:
    case(op, ours, reference, *inputs, grad=())

for op, ours, reference, inputs in [
    ("index_mask", lambda hf, a, m: a[m], lambda a, m: a[m], [(3, 4), mask]),
    (
        "index_mask",
        lambda hf, a, m: a.t()[m.t()],
        lambda a, m: a.T[m.T],
        [(3, 4), mask],
    ),
    ("index_mask", lambda hf, a, m: a[m], lambda a, m: a[m], [(3, 2, 2), some]),
    ("index_mask", lambda hf, a, m: a[:, m], lambda a, m: a[:, m], [(2, 3), some]),
    (
        "index_mask",
        lambda hf, a, m: a[:, m, ::2],
        lambda a, m: a[:, m, ::2],
        [(2, 3, 4), some],
    ),
    ("index_mask", lambda hf, a, m: a[m], lambda a, m: a[m], [(3, 2), some & False]),
    (
        "masked_select",
        lambda hf, a, m: hf.masked_select(a, m),
        lambda a, m: np.broadcast_to(a, (3, 4))[m],
        [(4,), mask],
    ),
    (
        "masked_select",
        lambda hf, a, m: a.masked_select(m),
        lambda a, m: a[:, np.broadcast_to(m, (3, 3))[0]].ravel(),
        [(2, 3), some],
    ),
]:
    case(op, ours, reference, *inputs)


def put_reference(a, m, v):
    a = a.copy()
    a[m] = v
    return a


def mask_put(hf, a, m, v, dim=0):
    return hf._C.ops.mask_put(a, dim, m, v)


count = int(mask.sum())
for ours, reference, inputs in [
    (mask_put, put_reference, [(3, 4), mask, (count,)]),
    (mask_put, put_reference, [(3, 4), mask, ()]),
    (mask_put, put_reference, [(3, 2, 2), some, (2, 2, 2)]),
    (mask_put, put_reference, [(3, 2, 2), some, (2,)]),
    (mask_put, put_reference, [(3, 2, 2), some, (2, 1, 2)]),
    (
        lambda hf, a, m, v: mask_put(hf, a.t(), m, v, 1),
        lambda a, m, v: put_reference(a, m, v.T).T,
        [(3, 2), some, (2, 2)],
    ),
    (
        lambda hf, a, m, v: (a * 2).masked_scatter(m, v) * 3,
        lambda a, m, v: put_reference(a * 2, m, v.ravel()[:count]) * 3,
        [(3, 4), mask, (3, 4)],
    ),
]:
    case("mask_put", ours, reference, *inputs)
case(
    "masked_scatter",
    lambda hf, a, m, v: hf.masked_scatter(a, m, v),
    lambda a, m, v: put_reference(np.tile(a, (3, 1)), m, v.ravel()[:count]),
    (4,),
    mask,
    (3, 4),
)


def filled_inplace(hf, a, m):
    b = a * 1
    b.masked_fill_(m, 2.5)
    return b


for ours in (lambda hf, a, m: hf.masked_fill(a, m, 2.5), filled_inplace):
    case(
        "masked_fill",
        ours,
        lambda a, m: np.where(m, 2.5, a),
        (3, 4),
        mask,
        label=" fill",
    )

# ---- index tensors

i0 = np.array([2, 0, 2, -1])
i1 = np.array([1, -3, 1, 0])
pair = np.array([[0, 2], [1, 1]])
slices = slice(None)

INDEXED = [
    ((3, 4), lambda i, j, m: (i,)),
    ((3, 4), lambda i, j, m: (i, j)),
    ((2, 3, 4), lambda i, j, m: (slices, i, j)),
    ((3, 2, 4), lambda i, j, m: (i, slices, j)),
    ((3, 2, 4), lambda i, j, m: (i, slices, j, None)),
    ((3, 4), lambda i, j, m: (pair if m is None else m, j[:2])),
    ((2, 3, 2), lambda i, j, m: (Ellipsis, i, slices)),
    ((3, 3, 2), lambda i, j, m: (i[:, None], j[None, :2])),
    ((4, 3, 3), lambda i, j, m: (slice(1, None, 2), i, None, j)),
    ((2, 3), lambda i, j, m: (1, i)),
    ((3,), lambda i, j, m: (i,)),
]


def key_of(make, i, j, hf=None):
    key = make(i, j, None if hf is None else hf.from_numpy(pair))
    return key


for shape, make in INDEXED:
    case(
        "index",
        lambda hf, a, i, j, f=make: a[key_of(f, i, j, hf)],
        lambda a, i, j, f=make: a[key_of(f, i, j)],
        shape,
        i0,
        i1,
    )
    # Transposed data, and a result that goes on.
    case(
        "index",
        lambda hf, a, i, j, f=make, n=len(shape): (
            (a * 2).permute(*range(n)[::-1]).contiguous().permute(*range(n)[::-1])
        )[key_of(f, i, j, hf)]
        * 3,
        lambda a, i, j, f=make: (a * 2)[key_of(f, i, j)] * 3,
        shape,
        i0,
        i1,
        label=" strided",
    )
case(
    "index", lambda hf, a: a[[]], lambda a: a[np.zeros(0, int)], (3, 4), label=" empty"
)
case(
    "index",
    lambda hf, a, i: a[:, i.int()],
    lambda a, i: a[:, i],
    (2, 3),
    i0,
    label=" int32",
)
case(
    "index",
    lambda hf, a, m, i: a[m, i],
    lambda a, m, i: a[m, i],
    (3, 4),
    some,
    np.array([3, 0]),
    label=" mask and index",
)
case(
    "index",
    lambda hf, a, m: a[m, :, m],
    lambda a, m: a[m, :, m],
    (3, 2, 3),
    some,
    label=" two masks",
)


def put_indexed(add):
    def run(a, i, j, v, f):
        a = a.copy()
        if add:
            np.add.at(a, key_of(f, i, j), v)
        else:
            a[key_of(f, i, j)] = v
        return a

    return run


u0, u1 = np.array([2, 0, 1, -1]), np.array([1, -2, 0, 0])  # pairs are distinct
for shape, make, values in [
    ((3, 4), lambda i, j, m: (i, j), (4,)),
    ((3, 4), lambda i, j, m: (i, j), ()),
    ((2, 3, 4), lambda i, j, m: (slices, i, j), (2, 4)),
    ((3, 2, 4), lambda i, j, m: (i, slices, j), (4, 2)),
    ((3, 2, 4), lambda i, j, m: (i, slices, j), (4, 1)),
    ((3, 2), lambda i, j, m: (i[:3],), (3, 2)),
    ((3, 2), lambda i, j, m: (i[:3],), (2,)),
    ((3, 3), lambda i, j, m: (i[:2, None], j[None, 1:3]), (2, 2)),
    ((4,), lambda i, j, m: (i,), (4,)),
]:
    for add in (False, True):
        if shape == (4,) and not add:
            continue

        def ours(hf, a, i, j, v, f=make, add=add):
            key = tuple(None if k == slices else k for k in key_of(f, i, j, hf))
            return hf.index_put(a * 1, key, v, accumulate=add)

        case(
            "index_put",
            ours,
            lambda a, i, j, v, f=make, add=add: put_indexed(add)(a, i, j, v, f),
            shape,
            u0,
            u1,
            values,
            label=" add" if add else "",
        )


def assigned(hf, a, i, v):
    b = a * 1
    b[i] = v
    return b * 2


case(
    "index_put",
    assigned,
    lambda a, i, v: put_indexed(False)(a, i, i, v, lambda i, j, m: i) * 2,
    (4, 2),
    np.array([3, 0]),
    (2, 2),
    label=" in place",
)
case(
    "index_put",
    lambda hf, a, i, v: hf.index_put(a.t(), (i,), v.t(), True),
    lambda a, i, v: put_indexed(True)(a.T, i, i, v.T, lambda i, j, m: i),
    (2, 4),
    np.array([3, 0, 3]),
    (2, 3),
    label=" transposed",
)
case("take", lambda hf, a, i: hf.take(a.t(), i), lambda a, i: a.T.take(i), (3, 4), i0)


def put_reference_flat(add):
    def run(a, i, v):
        a = a.copy()
        (np.add.at if add else np.put)(a.reshape(-1), i, v)
        return a

    return run


for add in (False, True):
    case(
        "put",
        lambda hf, a, i, v, add=add: hf.put(a, i, v, add),
        put_reference_flat(add),
        (3, 4),
        np.array([[5, 0], [-1, 7]]),
        (2, 2),
    )

# ---- scatter_reduce, and what is made of it

REDUCE = {
    "sum": (np.add, 0.0),
    "mean": (np.add, 0.0),
    "prod": (np.multiply, 1.0),
    "amax": (np.maximum, -np.inf),
    "amin": (np.minimum, np.inf),
}


def reduce_reference(a, i, s, reduce, include_self, axis=1):
    out, counts = a.copy(), np.full(a.shape, float(include_self))
    f, start = REDUCE[reduce]
    at = list(np.ndindex(i.shape))
    place = {p: p[:axis] + (i[p],) + p[axis + 1 :] for p in at}
    if not include_self:
        for p in at:
            out[place[p]] = start
    for p in at:
        out[place[p]] = f(out[place[p]], s[p])
        counts[place[p]] += 1
    return out / np.maximum(counts, 1) if reduce == "mean" else out


spread = np.array([[0, 2, 0], [1, 1, 1]])
for reduce in REDUCE:
    for include_self in (True, False):
        for source in ((2, 3), (3, 4)):
            case(
                "scatter_reduce",
                lambda hf, a, i, s, r=reduce, k=include_self: hf.scatter_reduce(
                    a, 1, i, s, r, include_self=k
                ),
                lambda a, i, s, r=reduce, k=include_self: reduce_reference(
                    a, i, s, r, k
                ),
                (2, 4),
                spread,
                source,
                label=f" {reduce} include_self={include_self}",
            )
case(
    "scatter_reduce",
    lambda hf, a, i, s: hf.scatter(a, 1, i, s, reduce="multiply"),
    lambda a, i, s: reduce_reference(a, i, s, "prod", True),
    (2, 4),
    spread,
    (2, 3),
    label=" multiply",
)
zeros = np.array([[0.0, 1.5, 0.0], [0.0, 2.0, 3.0]])
case(
    "scatter_reduce",
    lambda hf, a, i, s: hf.scatter_reduce(a, 1, i, s, "prod"),
    lambda a, i, s: reduce_reference(a, i, s, "prod", True),
    (2, 4),
    spread,
    zeros,
    label=" zeros",
    second=False,
)
picks = np.array([1, 0, 1])
# ---- indices of 32 bits, and empty ones of any type and rank


def put_along(a, i, s):
    a = a.copy()
    np.put_along_axis(a, i.astype(np.int64), s, 1)
    return a


narrow = np.array([[2, 0, 1, 1], [0, 0, 2, 1]], np.int32)
case(
    "gather",
    lambda hf, a, i: hf.gather(a, 1, i),
    lambda a, i: np.take_along_axis(a, i.astype(np.int64), 1),
    (2, 3),
    narrow,
    label=" int32 index",
)
for name in ("scatter_add", "scatter_reduce"):
    case(
        name,
        lambda hf, a, i, s, n=name: (
            hf.scatter_add(a, 1, i, s)
            if n == "scatter_add"
            else hf.scatter_reduce(a, 1, i, s, "mean")
        ),
        lambda a, i, s, n=name: reduce_reference(
            a, i, s, "sum" if n == "scatter_add" else "mean", True
        ),
        (2, 4),
        narrow[:, ::-1].copy(),
        (2, 4),
        label=" int32 index",
    )
case(
    "scatter",
    lambda hf, a, i, s: hf.scatter(a, 1, i, s),
    lambda a, i, s: put_along(a, i, s),
    (2, 4),
    np.array([[2, 0], [3, 1]], np.int32),
    (2, 2),
    label=" int32 index",
)
nothing = np.zeros((2, 0), np.uint8)
case(
    "gather",
    lambda hf, a, i: hf.gather(a, 0, i),
    lambda a, i: np.zeros((2, 0)),
    (5,),
    nothing,
    label=" empty index",
)
case(
    "scatter_add",
    lambda hf, a, i, s: hf.scatter_add(a, 0, i, s),
    lambda a, i, s: a,
    (5,),
    nothing,
    (2, 0),
    label=" empty index",
)
case(
    "scatter",
    lambda hf, a, i: hf.clone(a).scatter_(0, i, 3.0),
    lambda a, i: a,
    (5,),
    nothing,
    label=" empty index in place",
)
for reduce in ("prod", "mean", "amax", "amin"):
    case(
        "index_reduce",
        lambda hf, a, i, s, r=reduce: hf.index_reduce(a, 0, i, s, r),
        lambda a, i, s, r=reduce: reduce_reference(
            a, np.broadcast_to(i[:, None], s.shape), s, r, True, 0
        ),
        (3, 2),
        picks,
        (3, 2),
        label=f" {reduce}",
    )
case(
    "index_copy",
    lambda hf, a, i, s: hf.index_copy(a, 1, i, s),
    lambda a, i, s: put_reference(a.T, i, s.T).T,
    (2, 3),
    np.array([2, 0]),
    (2, 2),
)
case(
    "index_fill",
    lambda hf, a, i: hf.index_fill(a, -1, i, 7.0),
    lambda a, i: put_reference(a.T, i, 7.0).T,
    (2, 3),
    np.array([2, 0]),
)
case(
    "take_along_dim",
    lambda hf, a, i: hf.take_along_dim(a, i, 1),
    lambda a, i: np.take_along_axis(a, i, 1),
    (2, 3),
    np.array([[2, 0, 1, 1]]),
)
