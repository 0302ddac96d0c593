# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Lookups by index, and vectors compared."""

import holdfast

from .sizes import refuse

__all__ = [
    "cosine_similarity",
    "embedding",
    "normalize",
    "one_hot",
    "pairwise_distance",
]


def embedding(
    input,
    weight,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
):
    """Rows of weight [V, D] at int64 indices [*] -> [*, D].

    The row `padding_idx` gets no gradient.
    """
    refuse(
        "embedding",
        max_norm=max_norm,
        scale_grad_by_freq=scale_grad_by_freq,
        sparse=sparse,
    )
    rows, columns = weight.shape
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    shape = tuple(input.shape) + (columns,)
    result = weight.index_select(0, input.reshape(-1)).reshape(shape)
    if padding_idx is not None and weight.requires_grad:
        is_padding = (input == padding_idx).unsqueeze(-1)
        result = holdfast.where(is_padding, result.detach(), result)
    return result


def one_hot(tensor, num_classes=-1):
    """int64 classes [*] -> int64 zeros and ones [*, num_classes].

    num_classes -1 takes the largest class plus one, which waits for a read.
    """
    if num_classes == -1:
        if tensor.numel() == 0:
            raise RuntimeError(
                "Can not infer total number of classes from empty tensor."
            )
        num_classes = int(tensor.max().item()) + 1
    if num_classes <= 0:
        raise RuntimeError(
            f"num_classes must be positive or -1 (inferred). Got {num_classes}."
        )
    shape = tuple(tensor.shape) + (num_classes,)
    zeros = holdfast.zeros(shape, dtype=holdfast.int64)
    return zeros.scatter(-1, tensor.unsqueeze(-1), 1)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """input divided by its p-norm along dim, which is at least eps."""
    refuse("normalize", out=out)
    return input / _norm(input, p, dim, keepdim=True).clamp(min=eps)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """Cosine of the angle between x1 and x2 along dim."""
    norms = [_norm(x, 2, dim, keepdim=True).clamp(min=eps) for x in (x1, x2)]
    return ((x1 / norms[0]) * (x2 / norms[1])).sum(dim)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """p-norm of x1 - x2 + eps along the last dimension."""
    return _norm(x1 - x2 + eps, p, -1, keepdim)


def _norm(x, p, dim, keepdim):
    if p == 2:
        return (x * x).sum(dim, keepdim=keepdim).sqrt()
    if p == 1:
        return x.abs().sum(dim, keepdim=keepdim)
    if p == float("inf"):
        return x.abs().amax(dim, keepdim=keepdim)
    return (x.abs() ** p).sum(dim, keepdim=keepdim) ** (1 / p)
