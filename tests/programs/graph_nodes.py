# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What grad_fn is called: tutorials print it, and walk along next_functions."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

rng = np.random.RandomState(0)


def leaf(*shape):
    values = rng.uniform(0.1, 0.9, shape)
    return torch.tensor(values, dtype=torch.float32, requires_grad=True)


a, b, image = leaf(4, 4), leaf(4, 4), leaf(2, 3, 8, 8)
classes = torch.arange(4)
losses = {
    "mse": F.mse_loss(a, b),
    "mse, not reduced": nn.MSELoss(reduction="none")(a, b),
    "l1": F.l1_loss(a, b),
    "smooth l1": F.smooth_l1_loss(a, b),
    "huber": F.huber_loss(a, b),
    "cross entropy": F.cross_entropy(a, classes),
    "nll": F.nll_loss(F.log_softmax(a, dim=1), classes),
    "bce": F.binary_cross_entropy(a, b.detach()),
    "bce with logits": F.binary_cross_entropy_with_logits(a, b.detach()),
}
layers = {
    "linear": nn.Linear(4, 2)(a),
    "linear, three dimensions": nn.Linear(4, 2)(a[None]),
    "no bias": nn.Linear(4, 2, bias=False)(a),
    "conv": nn.Conv2d(3, 4, 3)(image),
    "transposed": nn.ConvTranspose2d(3, 4, 3)(image),
    "layer norm": nn.LayerNorm(4)(a),
    "group norm": nn.GroupNorm(3, 3)(image),
    "batch norm": nn.BatchNorm2d(3)(image),
    "embedding": nn.Embedding(5, 3)(classes),
    "dropout": nn.Dropout(0.5)(a),
    "prelu": nn.PReLU()(a),
    "glu": F.glu(a),
    "log sigmoid": F.logsigmoid(a),
    "max pool": F.max_pool2d(image, 2),
    "average pool": F.avg_pool2d(image, 2),
    "adaptive pool": F.adaptive_avg_pool2d(image, 2),
    "upsample": F.interpolate(image, scale_factor=2),
    "bilinear": F.interpolate(image, scale_factor=2, mode="bilinear"),
    "grid sample": F.grid_sample(image, torch.zeros(2, 4, 4, 2), align_corners=False),
    "padded": F.pad(a, (1, 1)),
}
products = {
    "mm": a @ b,
    "mv": a @ b[0],
    "dot": a[0] @ b[0],
    "bmm": torch.bmm(a[None], b[None]),
    "batched": a[None] @ b[None],
    "addmm": torch.addmm(a, a, b),
    "baddbmm": torch.baddbmm(a[None], a[None], b[None]),
    "inverse": torch.inverse(a),
    "det": torch.det(a),
    "slogdet": torch.slogdet(a)[1],
    "cdist": torch.cdist(a, b),
}
reductions = {
    "mean": a.mean(),
    "mean of rows": a.mean(1),
    "sum of columns": a.sum(dim=0),
    "std": a.std(),
    "var": a.var(1),
    "max": a.max(),
    "max of rows": a.max(1)[0],
    "min of rows": a.min(dim=1).values,
    "amax": a.amax(1),
    "median": a.median(),
    "logsumexp": a.logsumexp(1),
    "norm": a.norm(),
    "linalg.norm": torch.linalg.norm(a),
    "trace": a.trace(),
}
shapes = {
    "stack": torch.stack([a, b]),
    "split": a.split(2)[0],
    "chunk": a.chunk(2)[1],
    "unbind": a.unbind()[0],
    "transpose": a.t(),
    "permute": a.T,
    "repeat": a.repeat(2, 1),
    "squeeze": a[None].squeeze(0),
    "roll": a.roll(1, 0),
    "diag": a.diag(),
    "masked fill": a.masked_fill(a > 0.5, 0),
    "masked select": a.masked_select(a > 0.5),
    "take": a.take(torch.tensor([1])),
    "scatter": a.scatter(0, torch.zeros(1, 4).long(), 0.0),
    "shuffled": F.pixel_shuffle(leaf(1, 4, 2, 2), 2),
}
arithmetic = {
    "1 - a": 1 - a,
    "1 / a": 1 / a,
    "a ** 2": a**2,
    "2 ** a": 2**a,
    "a ** b": a**b,
    "clamp": a.clamp(0, 1),
    "lerp": torch.lerp(a, b, 0.5),
    "addcmul": torch.addcmul(a, a, b),
    "log1p": a.log1p(),
}
for group in (losses, layers, products, reductions, shapes, arithmetic):
    for name, tensor in group.items():
        print(name, tensor.grad_fn.name())

# Written through a view, in place, and not at all.
c = a * 1
c[0] = 1
print("view", c.grad_fn.name(), type(c.grad_fn).__name__, c[1])
c = a * 1
c += 1
print("in place", c.grad_fn.name())
row = torch.zeros(2)
row[1] = a.sum()
print("made part of the graph", row, row.requires_grad)
c = a * 1
first = c[0]
c.mul_(2)
print("a view of what was written", first.grad_fn.name())

# The walk of the first tutorial.
model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
loss = nn.MSELoss()(model(a.detach()), torch.ones(4, 1))
node = loss.grad_fn
while node is not None:
    nodes = [next for next, _ in node.next_functions]
    print(type(node).__name__, [type(next).__name__ for next in nodes])
    node = nodes[1] if len(nodes) > 1 else nodes[0]
first = loss.grad_fn.next_functions[0][0].next_functions[0][0]
print(first.name(), str(loss.grad_fn).split(" object")[0])
with torch.no_grad():
    for p in model.parameters():
        p.fill_(0.5)
print(model(a.detach().round()))
print(F.mse_loss(a.detach(), b.detach()).grad_fn, a.grad_fn)
