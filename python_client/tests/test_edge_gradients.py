# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Gradients where functions have corners, poles and ties: PyTorch's."""

import numpy as np
import pytest

from torch_peer import assert_same_results, leaves, torch

pytestmark = pytest.mark.usefixtures("torch")
# Six, so that no weight of the sum is 0.
Z = [0.0, 0.0, 1.0, 2.0, -1.0, 3.0]
EDGES = {
    "entr": (lambda t, x: t.special.entr(x), Z),
    "xlogy": (lambda t, x, y: t.xlogy(x, y), Z, [0.0, 1.0, 0.0, 3.0, 1.0, 2.0]),
    "xlogy_no_gradient": (lambda t, x: t.xlogy(x, t.zeros(3)), [0.0, 0.0, 2.0]),
    "xlog1py": (
        lambda t, x, y: t.special.xlog1py(x, y),
        Z,
        [-1.0, 0.0, 1.0, -1.0, 2.0, 1.0],
    ),
    "kl_div": (
        lambda t, x, y: t.nn.functional.kl_div(x, y, reduction="sum"),
        [-1.0, -2.0, -3.0, 0.0, 1.0],
        [0.0, 0.5, 0.0, 1.0, 0.3],
    ),
    "kl_div_constant": (
        lambda t, x: t.nn.functional.kl_div(x, t.tensor([0.0, 0.5]), reduction="sum"),
        [-1.0, -2.0],
    ),
    "clamp_above": (
        lambda t, x, y: x.clamp(max=y),
        [0.0, 1.0, -1.0, 2.0],
        [0.0, 1.0, 0.0, 1.0],
    ),
    "clamp_between": (
        lambda t, x, y, z: t.clamp(x, y, z),
        [0.0, 1.0, -1.0, 2.0, 5.0],
        [0.0, 0.0, 0.0, 1.0, 3.0],
        [1.0, 1.0, 1.0, 2.0, 2.0],
    ),
    "norm": (lambda t, x: x.norm(), [0.0, 0.0]),
    "norm3": (lambda t, x: x.norm(3), [0.0, 0.0]),
    "cdist": (lambda t, x: t.cdist(x[None, :, None], x[None, :, None]), [0.0, 0.0, 1]),
    "power": (lambda t, x, y: x**y, [0.0, 0.0, 0.0, 2.0], [0.0, 1.0, 2.0, 0.0]),
    "max_tie": (lambda t, x: x.max(), [1.0, 1.0, 0.0]),
    "max_dim_tie": (lambda t, x: x.max(0)[0], [1.0, 1.0, 0.0]),
    "maximum_tie": (lambda t, x, y: t.maximum(x, y), [1.0, 1.0], [1.0, 0.0]),
    "prod": (lambda t, x: x.prod(), [0.0, 2.0, 0.0]),
    "hardswish": (lambda t, x: t.nn.functional.hardswish(x), [0.0, 3.0, -3.0, 4.0]),
    "relu6": (lambda t, x: t.nn.functional.relu6(x), [0.0, 6.0, 7.0, -1.0]),
    "atan2": (lambda t, x, y: t.atan2(x, y), [0.0, 1.0], [0.0, 0.0]),
    "where_log": (lambda t, x: t.where(x > 0, x.log(), x), [0.0, 1.0]),
    "sinc": (lambda t, x: t.sinc(x), [0.0, 1.0]),
}


@pytest.mark.parametrize("name", EDGES)
def test_edge(name):
    import holdfast

    f, *arrays = EDGES[name]
    ours, theirs = leaves([np.array(a, np.float64) for a in arrays])
    assert_same_results(f(holdfast, *ours), f(torch, *theirs), ours, theirs)
