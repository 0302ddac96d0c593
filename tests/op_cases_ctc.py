# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of connectionist temporal classification."""

import numpy as np
from op_cases import case
from op_cases_loss import log_softmax, reduced


def ctc(lp, targets, steps, lengths, blank=0):
    """By adding up every path that collapses to the target."""
    losses = []
    for n in range(lp.shape[1]):
        label = [int(c) for c in targets[n][: lengths[n]]]
        total = 0.0
        for path in np.ndindex(*(lp.shape[2],) * int(steps[n])):
            merged = [c for i, c in enumerate(path) if i == 0 or path[i - 1] != c]
            if [c for c in merged if c != blank] == label:
                total += np.exp(sum(lp[t, n, c] for t, c in enumerate(path)))
        losses.append(-np.log(total) if total > 0 else np.inf)
    return np.array(losses)


labels = np.array([[1, 2, 2], [2, 1, 1], [1, 1, 2], [1, 1, 1]])
steps = np.array([5, 4, 3, 5])
lengths = np.array([2, 1, 0, 3])
for op in ("ctc_loss", "nn.functional.ctc_loss"):
    for reduction in ("none", "sum", "mean"):
        case(
            op,
            lambda hf, x, t, s, n, r=reduction: hf.nn.functional.ctc_loss(
                x.log_softmax(2), t, s, n, reduction=r
            ),
            lambda x, t, s, n, r=reduction: reduced(
                ctc(log_softmax(x, 2), t, s, n)
                / (np.maximum(n, 1) if r == "mean" else 1),
                r,
            ),
            (5, 4, 3),
            labels,
            steps,
            lengths,
            label=f" {reduction}",
            second=False,
        )
case(
    "nn.functional.ctc_loss",
    lambda hf, x, t: hf.nn.functional.ctc_loss(
        x.log_softmax(2), t, (5, 4, 3, 5), (2, 1, 0, 3), blank=2, reduction="sum"
    ),
    lambda x, t: ctc(
        log_softmax(x, 2), [[0, 1], [1], [], [0, 0, 1]], steps, lengths, 2
    ).sum(),
    (5, 4, 3),
    np.array([0, 1, 1, 0, 0, 1]),
    label=" joined targets",
    second=False,
)
case(
    "nn.functional.ctc_loss",
    lambda hf, x, t: hf.nn.functional.ctc_loss(
        x.log_softmax(2), t, [2, 5], [3, 2], reduction="sum", zero_infinity=True
    ),
    lambda x, t: ctc(log_softmax(x, 2), t, [2, 5], [3, 2])[1],
    (5, 2, 3),
    np.array([[1, 2, 1], [1, 2, 0]]),
    label=" zero_infinity",
    second=False,
)


def ctc_gradient(hf, g, x):
    lp = x.log_softmax(2)
    rest = [hf.tensor(v) for v in ([[1, 2], [2, 2]], [4, 3], [2, 1])]
    loss, alpha = hf._C.ops.ctc_loss(lp, *rest, 0)
    return hf._C.ops.ctc_loss_backward(g, lp, *rest, loss, alpha, 0)


def ctc_gradient_reference(g, x):
    """p - posterior(class at t), from the paths' probabilities."""
    out = np.zeros_like(x)
    targets, steps = [[1, 2], [2]], [4, 3]
    lp = log_softmax(x, 2)
    for n, label in enumerate(targets):
        posterior, total = np.zeros(x.shape[::2]), 0.0
        for path in np.ndindex(*(x.shape[2],) * steps[n]):
            merged = [c for i, c in enumerate(path) if i == 0 or path[i - 1] != c]
            if [c for c in merged if c != 0] == label:
                chance = np.exp(sum(lp[t, n, c] for t, c in enumerate(path)))
                total += chance
                for t, c in enumerate(path):
                    posterior[t, c] += chance
        used = slice(0, steps[n])
        out[used, n] = g[n] * (np.exp(lp[used, n]) - posterior[used] / total)
    return out


case(
    "ctc_loss_backward",
    ctc_gradient,
    ctc_gradient_reference,
    np.array([1.0, 2.0]),
    (4, 2, 3),
    grad=(),
)
