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
