# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Connectionist temporal classification (Graves et al. 2006)."""

import math

import holdfast
from holdfast import _C

from .reduction import reduction_of

__all__ = ["ctc_loss"]

_ops = _C.ops


def ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank=0,
    reduction="mean",
    zero_infinity=False,
):
    """-log of the probability of all alignments of `targets` with `log_probs`.

    log_probs [T, N, C] or [T, C], from log_softmax; targets int64 [N, S], or all
    samples' joined [sum(target_lengths)]; the lengths are int64 [N], or sequences.
    "mean" divides each loss by its target's length first. zero_infinity: a target
    too long for its input counts for nothing.
    """
    reduction = reduction_of(reduction)
    single = log_probs.dim() == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
    input_lengths = _lengths(input_lengths)
    target_lengths = _lengths(target_lengths)
    if targets.dim() == 1 and single:
        targets = targets.unsqueeze(0)
    elif targets.dim() == 1:
        targets = _padded(targets, target_lengths)
    targets = targets.to(holdfast.int64)
    loss = _ops.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank)[0]
    if zero_infinity:
        loss = holdfast.where(loss == math.inf, 0.0, loss)
    if reduction == "mean":
        return (loss / target_lengths.clamp(min=1).to(loss.dtype)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss.squeeze(0) if single else loss


def _lengths(lengths):
    if isinstance(lengths, holdfast.Tensor):
        return lengths.to(holdfast.int64).reshape(-1)
    lengths = [lengths] if isinstance(lengths, int) else list(lengths)
    return holdfast.tensor(lengths, dtype=holdfast.int64)


def _padded(targets, lengths):
    """Joined targets [sum(lengths)] as [N, max(lengths)]; waits for the lengths."""
    counts = lengths.tolist()
    if sum(counts) != targets.shape[0]:
        raise RuntimeError(
            f"[ctc_loss] Expected targets of size {sum(counts)}, the sum of "
            f"target_lengths. Got {targets.shape[0]}."
        )
    longest = max(counts, default=0)
    rows, start = [], 0
    for count in counts:
        row = targets.narrow(0, start, count)
        rows.append(_ops.constant_pad(row, [0, longest - count]))
        start += count
    return holdfast.stack(rows) if rows else targets.reshape(0, 0)
