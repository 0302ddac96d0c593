# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The calls that ops.py times. `torch` is PyTorch or holdfast; both make their
operands with the same code. Values of operands do not matter, but that functions
stay in their domain and that no operand grows from call to call."""

import math

# The largest operand's elements. Matrices have about as many, square.
SIZES = {"1e3": 1000, "1e6": 1_000_000, "3e7": 30_000_000}
GROUPS = ("shapes", "rows of 10", "rows of 32", *SIZES)
ROWS = {"rows of 10": 10, "rows of 32": 32}  # of 1e6 elements in all

# Bytes that an op must read and write, over those of a copy of its operand.
TRAFFIC = {
    "copy": 1,
    "add": 1.5,
    "add_": 1.5,
    "mul": 1.5,
    "mul scalar": 1,
    "relu": 1,
    "where": 1.625,
    "sum": 0.5,
}


def calls(torch, group):
    """name -> a call without arguments, of one of GROUPS."""
    if group == "shapes":
        return shaped(torch)
    if group in ROWS:
        return short_rows(torch, ROWS[group])
    n = SIZES[group]
    cases = {**pointwise(torch, n), **moving(torch, n), **reducing(torch, n)}
    if n <= 1_000_000:
        cases.update(ordering(torch, n))
    return cases


def square(torch, n):
    side = math.isqrt(n)
    return torch.rand(side, side) + 0.5


def pointwise(torch, n):
    a, b = torch.rand(n) + 0.5, torch.rand(n) + 0.5
    target, zeros = torch.rand(n), torch.zeros(n)
    m = square(torch, n)
    row = torch.rand(m.shape[0])
    mask = a > 1.0
    whole = (a * 100).long()
    return {
        "copy": lambda: a.clone(),
        "add": lambda: a + b,
        "add_": lambda: target.add_(zeros),
        "mul": lambda: a * b,
        "mul scalar": lambda: a * 1.5,
        "div": lambda: a / b,
        "pow 2": lambda: a**2,
        "pow": lambda: a**b,
        "maximum": lambda: torch.maximum(a, b),
        "add row": lambda: m + row,
        "add transposed": lambda: m + m.t(),
        "gt": lambda: a > b,
        "where": lambda: torch.where(mask, a, b),
        "masked_fill": lambda: a.masked_fill(mask, 0.0),
        "clamp": lambda: a.clamp(0.6, 1.2),
        "abs": lambda: a.abs(),
        "relu": lambda: a.relu(),
        "exp": lambda: a.exp(),
        "log": lambda: a.log(),
        "sqrt": lambda: a.sqrt(),
        "sin": lambda: a.sin(),
        "tanh": lambda: a.tanh(),
        "sigmoid": lambda: a.sigmoid(),
        "erf": lambda: a.erf(),
        "atan2": lambda: torch.atan2(a, b),
        "hypot": lambda: torch.hypot(a, b),
        "lgamma": lambda: a.lgamma(),
        "floor_divide": lambda: a // b,
        "floor_divide int": lambda: whole // 7,
        "remainder int": lambda: whole % 7,
        "to int64": lambda: a.long(),
        "rand": lambda: torch.rand(n),
        "randn": lambda: torch.randn(n),
    }


def moving(torch, n):
    a, b = torch.rand(n), torch.rand(n)
    m = square(torch, n)
    mask = a > 0.5
    index = (torch.rand(n) * n).long()
    rows = (torch.rand(m.shape[0]) * m.shape[0]).long()
    side = math.isqrt(math.isqrt(n))
    left, right = torch.rand(side, side), torch.rand(side, side)
    return {
        "contiguous of t": lambda: m.t().contiguous(),
        "cat": lambda: torch.cat([a, b]),
        "flip": lambda: a.flip(0),
        "flip rows": lambda: m.flip(0),
        "roll": lambda: a.roll(1),
        "roll rows": lambda: m.roll(1, 0),
        "tril": lambda: m.tril(),
        "kron": lambda: torch.kron(left, right),
        "index rows": lambda: m[rows],
        "gather": lambda: a.gather(0, index),
        "index_add": lambda: a.index_add(0, index, b),
        "index_put": lambda: a.index_put((index,), b),
        "index_put added": lambda: a.index_put((index,), b, accumulate=True),
        "scatter_add": lambda: a.scatter_add(0, index, b),
        "scatter_reduce": lambda: a.scatter_reduce(0, index, b, "amax"),
        "mask read": lambda: a[mask],
    }


def reducing(torch, n):
    a = torch.rand(n) + 0.5
    m = square(torch, n)
    t = m.t()
    short = a[: n // 8 * 8].reshape(-1, 8)
    return {
        "sum": lambda: a.sum(),
        "sum rows": lambda: m.sum(0),
        "sum columns": lambda: m.sum(1),
        "sum short rows": lambda: short.sum(1),
        "mean columns": lambda: m.mean(1),
        "var": lambda: a.var(),
        "var columns": lambda: m.var(1),
        "max": lambda: a.max(),
        "amax columns": lambda: m.amax(1),
        "argmax columns": lambda: m.argmax(1),
        "argmax rows": lambda: m.argmax(0),
        "norm": lambda: a.norm(),
        "prod rows": lambda: m.prod(0),
        "prod columns": lambda: m.prod(1),
        "nansum": lambda: a.nansum(),
        "nansum columns": lambda: m.nansum(1),
        "count_nonzero": lambda: torch.count_nonzero(a),
        "count_nonzero of t": lambda: torch.count_nonzero(t, 1),
        "all": lambda: a.all(),
        "cumsum": lambda: a.cumsum(0),
        "cumsum short rows": lambda: short.cumsum(1),
        "logsumexp": lambda: m.logsumexp(1),
        "softmax": lambda: m.softmax(1),
    }


def ordering(torch, n):
    a, m = torch.rand(n), square(torch, n)
    few = (m * 10).long()
    return {
        "sort": lambda: a.sort(),
        "sort columns": lambda: m.sort(1),
        "topk": lambda: a.topk(10),
        "topk columns": lambda: m.topk(10, 1),
        "mode": lambda: few.mode(1),
        "unique": lambda: few.unique(),
    }


def short_rows(torch, length):
    """What classifiers and attention heads do along their last dimension."""
    f = torch.nn.functional
    count = SIZES["1e6"] // length
    x = torch.rand(count, length) + 0.5
    row, column = torch.rand(length), torch.rand(count, 1)
    labels = (torch.rand(count) * length).long()
    one_each = labels.unsqueeze(1)
    return {
        "add row": lambda: x + row,
        "mul column": lambda: x * column,
        "outer": lambda: column * row,
        "sum": lambda: x.sum(1),
        "mean": lambda: x.mean(1),
        "prod": lambda: x.prod(1),
        "amax": lambda: x.amax(1),
        "max with indices": lambda: x.max(1),
        "argmax": lambda: x.argmax(1),
        "var": lambda: x.var(1),
        "norm": lambda: x.norm(dim=1),
        "logsumexp": lambda: x.logsumexp(1),
        "softmax": lambda: x.softmax(1),
        "log_softmax": lambda: x.log_softmax(1),
        "layer_norm": lambda: f.layer_norm(x, (length,)),
        "cross_entropy": lambda: f.cross_entropy(x, labels),
        "gather one": lambda: x.gather(1, one_each),
        "one_hot": lambda: f.one_hot(labels, length),
        "centred": lambda: x - x.mean(1, keepdim=True),
    }


def shaped(torch):
    f, linalg = torch.nn.functional, torch.linalg
    m, v = torch.rand(512, 512), torch.rand(512)
    batch = torch.rand(32, 64, 64)
    image = torch.rand(16, 32, 28, 28)
    kernel, deep = torch.rand(64, 32, 3, 3), torch.rand(32, 1, 3, 3)
    signal, filters = torch.rand(16, 32, 256), torch.rand(64, 32, 5)
    tokens, others = torch.rand(32, 128, 256), torch.rand(32, 128, 256)
    weight, bias = torch.rand(256), torch.rand(256)
    matrix = torch.rand(512, 256)
    mean, spread = torch.zeros(32), torch.ones(32)
    q = torch.rand(4, 8, 128, 64)
    labels = (torch.rand(512) * 512).long()
    table, words = torch.rand(10000, 128), (torch.rand(32, 128) * 10000).long()
    spd = m @ m.t() + torch.eye(512) * 512
    small = torch.rand(8, 8) + torch.eye(8) * 8
    small_rhs = torch.rand(8, 4)
    middle = torch.rand(64, 64) + torch.eye(64) * 64
    photo, grid = torch.rand(8, 3, 128, 128), torch.rand(8, 128, 128, 2) * 2 - 1

    def attention():
        return (q @ q.transpose(-2, -1) * 0.125).softmax(-1) @ q

    cases = {
        "matmul 512": lambda: m @ m,
        "matvec 512": lambda: m @ v,
        "bmm 32x64x64": lambda: torch.bmm(batch, batch),
        "linear": lambda: f.linear(tokens, matrix, None),
        "conv2d 3x3": lambda: f.conv2d(image, kernel, padding=1),
        "conv2d depthwise": lambda: f.conv2d(image, deep, padding=1, groups=32),
        "conv1d": lambda: f.conv1d(signal, filters),
        "max_pool2d": lambda: f.max_pool2d(image, 2),
        "avg_pool2d": lambda: f.avg_pool2d(image, 2),
        "global avg pool": lambda: f.adaptive_avg_pool2d(image, 1),
        "interpolate bilinear": lambda: f.interpolate(
            image, scale_factor=2, mode="bilinear"
        ),
        "grid_sample": lambda: f.grid_sample(photo, grid, align_corners=False),
        "batch_norm": lambda: f.batch_norm(image, mean, spread, training=True),
        "layer_norm": lambda: f.layer_norm(tokens, (256,), weight, bias),
        "gelu": lambda: f.gelu(tokens),
        "silu": lambda: f.silu(tokens),
        "glu": lambda: f.glu(tokens),
        "cross_entropy": lambda: f.cross_entropy(m, labels),
        "mse_loss": lambda: f.mse_loss(tokens, others),
        "smooth_l1_loss": lambda: f.smooth_l1_loss(tokens, others),
        "embedding": lambda: f.embedding(words, table),
        "attention": attention,
        "kron 32x32": lambda: torch.kron(m[:32, :32], m[:32, :32]),
        "cholesky 512": lambda: linalg.cholesky(spd),
        "solve 512": lambda: linalg.solve(spd, v),
        "svd 512": lambda: linalg.svdvals(m),
    }
    for name, a, rhs in (("8", small, small_rhs), ("64", middle, middle[:, :4])):
        cases.update(factoring(linalg, name, a, rhs))
    return cases


def factoring(linalg, name, a, rhs):
    return {
        f"lu {name}": lambda: linalg.lu(a),
        f"lu_factor {name}": lambda: linalg.lu_factor(a),
        f"det {name}": lambda: linalg.det(a),
        f"inv {name}": lambda: linalg.inv(a),
        f"solve {name}": lambda: linalg.solve(a, rhs),
        f"solve_triangular {name}": lambda: linalg.solve_triangular(a, rhs, upper=True),
        f"cholesky {name}": lambda: linalg.cholesky(a @ a.t()),
        f"qr {name}": lambda: linalg.qr(a),
    }
