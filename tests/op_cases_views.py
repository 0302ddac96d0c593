# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of views, joining and indexing along one dimension."""


import numpy as np
from op_cases import case, ints


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

for op, ours, reference in [
    ("alias_copy", lambda hf, a: hf.alias_copy(a), lambda a: a),
    ("as_strided_copy", lambda hf, a: hf.as_strided_copy(a, (2, 2), (1, 3)), None),
    ("diagonal_copy", lambda hf, a: hf.diagonal_copy(a, 1), None),
    ("expand_copy", lambda hf, a: hf.expand_copy(a, (2, 3, 4)), None),
    ("permute_copy", lambda hf, a: hf.permute_copy(a, (1, 0)), lambda a: a.T),
    ("squeeze_copy", lambda hf, a: hf.squeeze_copy(a[None]), lambda a: a),
    ("t_copy", lambda hf, a: hf.t_copy(a), lambda a: a.T),
    ("transpose_copy", lambda hf, a: hf.transpose_copy(a, 0, 1), lambda a: a.T),
    ("unbind_copy", lambda hf, a: hf.unbind_copy(a)[1], lambda a: a[1]),
    ("unfold_copy", lambda hf, a: hf.unfold_copy(a, 1, 2, 1), None),
    ("unsqueeze_copy", lambda hf, a: hf.unsqueeze_copy(a, 1), lambda a: a[:, None]),
    ("view_copy", lambda hf, a: hf.view_copy(a, (4, 3)), lambda a: a.reshape(4, 3)),
    ("select_copy", lambda hf, a: hf.select_copy(a, 1, 2), lambda a: a[:, 2]),
    ("split_copy", lambda hf, a: hf.split_copy(a, 2)[1], lambda a: a[2:]),
    (
        "split_with_sizes_copy",
        lambda hf, a: hf.split_with_sizes_copy(a, [1, 2])[1],
        lambda a: a[1:],
    ),
]:
    plain = {
        "as_strided_copy": lambda a: a.reshape(-1)[[[0, 3], [1, 4]]],
        "diagonal_copy": lambda a: np.diagonal(a, 1),
        "expand_copy": lambda a: np.broadcast_to(a, (2, 3, 4)),
        "unfold_copy": lambda a: np.stack([a[:, i : i + 2] for i in range(3)], 1),
    }
    case(op, ours, reference or plain[op], (3, 4))
