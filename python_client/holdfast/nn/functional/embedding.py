# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Lookups by index, and vectors compared."""

import math

import holdfast
from holdfast import _C

from .sizes import refuse

__all__ = [
    "bilinear",
    "cosine_similarity",
    "embedding",
    "embedding_bag",
    "normalize",
    "one_hot",
    "pairwise_distance",
]

_ops = _C.ops


def embedding(
    input,
    weight,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
):
    """Rows of weight [V, D] at int indices [*] -> [*, D].

    The row `padding_idx` gets no gradient. max_norm: rows used whose norm_type-norm
    is larger are first scaled down to it, in place. scale_grad_by_freq divides the
    gradient of a row by how often input has it. Gradients are dense (sparse=True is
    accepted, and makes no difference).
    """
    if weight.dim() != 2:
        raise RuntimeError(
            f"[embedding] 'weight' must be 2-D. Got {list(weight.shape)}."
        )
    rows, columns = weight.shape
    padding_idx = _padding(padding_idx, rows)
    flat = input.reshape(-1)
    if max_norm is not None:
        _renorm(weight, flat, max_norm, norm_type)
    result = weight.index_select(0, flat)
    if weight.requires_grad:
        result = _share_gradient(result, flat, rows, padding_idx, scale_grad_by_freq)
    result = result.reshape(tuple(input.shape) + (columns,))
    return _C.show_as(result, "EmbeddingBackward0", weight)


def _padding(padding_idx, rows):
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % rows


def _renorm(weight, index, max_norm, norm_type):
    with holdfast.no_grad():
        table = weight.detach()
        used = table.index_select(0, index)
        norms = used.norm(norm_type, 1, True)
        scale = holdfast.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
        where = index.to(holdfast.int64).unsqueeze(1).expand(tuple(used.shape))
        # A row used several times is written several times alike.
        table.scatter_(0, where, used * scale)


def _share_gradient(result, index, rows, padding_idx, by_frequency):
    """`result` with its gradient scaled; its values are not."""
    if by_frequency:
        index = index.to(holdfast.int64)
        ones = holdfast.ones(tuple(index.shape), dtype=result.dtype)
        counts = holdfast.zeros((rows,), dtype=result.dtype)
        counts = counts.scatter_add(0, index, ones).gather(0, index)
        scaled = result / counts.unsqueeze(1)
        result = result.detach() + (scaled - scaled.detach())
    if padding_idx is not None:
        is_padding = (index == padding_idx).unsqueeze(1)
        result = holdfast.where(is_padding, result.detach(), result)
    return result


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type: float = 2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Sums, means or maxima of rows of weight [V, D] over bags of indices -> [B, D].

    input int [B, L] is B bags; input [n] needs offsets [B], where each bag starts
    (include_last_offset: and where the last one ends). per_sample_weights, of
    input's shape, multiply the rows ("sum" only). `padding_idx` entries count for
    nothing. Empty bags are zero. Other arguments as for embedding.
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None:
        if mode != "sum":
            raise NotImplementedError(
                "embedding_bag: per_sample_weights was not None. per_sample_weights "
                f"is only supported for mode='sum' (got mode='{mode}')."
            )
        if tuple(per_sample_weights.shape) != tuple(input.shape):
            raise ValueError(
                f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is "
                "not None, then it must have the same shape as the input "
                f"({input.shape})"
            )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is "
                "a mini-batch of fixed length sequences. However, found offsets of "
                f"type {type(offsets)}"
            )
        count, length = input.shape
        bags = holdfast.arange(count).unsqueeze(1).expand(count, length).reshape(-1)
    elif input.dim() == 1:
        if offsets is None or offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
        count = offsets.shape[0] - (1 if include_last_offset else 0)
        bags, length = _bags(offsets, count, input.shape[0]), None
    else:
        raise ValueError(
            "input has to be 1D or 2D Tensor, but got Tensor of dimension "
            f"{input.dim()}"
        )
    flat = input.reshape(-1)
    padding_idx = _padding(padding_idx, weight.shape[0])
    rows = embedding(
        flat, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
    )
    counted = holdfast.ones(tuple(flat.shape), dtype=weight.dtype)
    if padding_idx is not None:
        counted = (flat != padding_idx).to(weight.dtype)
    if mode == "max":
        return _bag_max(rows, bags, counted, count)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    if padding_idx is not None:
        rows = rows * counted.unsqueeze(1)
    if length is not None and length > 0:
        total = rows.reshape(count, length, -1).sum(1)
    else:
        zeros = holdfast.zeros((count, weight.shape[1]), dtype=weight.dtype)
        total = zeros.index_add(0, bags, rows)
    if mode == "sum":
        return total
    sizes = holdfast.zeros((count,), dtype=weight.dtype).index_add(0, bags, counted)
    return total / sizes.clamp(min=1).unsqueeze(1)


def _bags(offsets, count, n):
    """The bag of each of n indices: how many later bags have started by then."""
    starts = holdfast.zeros((n + 1,), dtype=holdfast.int64)
    later = offsets.narrow(0, 1, count - 1).to(holdfast.int64) if count > 1 else None
    if later is not None:
        ones = holdfast.ones(tuple(later.shape), dtype=holdfast.int64)
        starts = starts.scatter_add(0, later, ones)
    return starts.narrow(0, 0, n).cumsum(0)


def _bag_max(rows, bags, counted, count):
    """Maxima over bags, of the counted rows; waits for the bags' sizes."""
    sizes = [0] * count
    for bag, real in zip(bags.tolist(), counted.tolist()):
        sizes[bag] += real != 0
    longest = int(max(sizes, default=0))
    if longest == 0:
        return rows.new_zeros((count, rows.shape[1]))
    # [B, longest] positions of each bag's rows; the row after the last is -inf.
    places = [[rows.shape[0]] * longest for _ in sizes]
    filled = [0] * count
    for place, (bag, real) in enumerate(zip(bags.tolist(), counted.tolist())):
        if real:
            places[bag][filled[bag]] = place
            filled[bag] += 1
    index = holdfast.tensor(places, dtype=holdfast.int64).reshape(-1)
    low = holdfast.full((1, rows.shape[1]), -math.inf, dtype=rows.dtype)
    spread = holdfast.cat([rows, low]).index_select(0, index)
    best = spread.reshape(count, longest, -1).max(1)[0]
    return holdfast.where(best == -math.inf, 0.0, best)


def bilinear(input1, input2, weight, bias=None):
    """x1^T W x2 + b: input1 [*, I], input2 [*, J], weight [O, I, J], bias [O]."""
    outputs, left, right = weight.shape
    if input1.shape[-1] != left or input2.shape[-1] != right:
        raise RuntimeError(
            "bilinear(): input sizes must match weight's. Got "
            f"{list(input1.shape)}, {list(input2.shape)}, {list(weight.shape)}."
        )
    lead = tuple(input1.shape)[:-1]
    mixed = input1.reshape(-1, left).matmul(
        weight.permute(1, 0, 2).reshape(left, outputs * right)
    )
    second = input2.reshape(-1, right, 1)
    result = mixed.reshape(-1, outputs, right).matmul(second)
    result = result.reshape(lead + (outputs,))
    return result if bias is None else result + bias


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
    if tensor.dtype != holdfast.int64:
        raise RuntimeError("one_hot is only applicable to index tensor.")
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
    return input / input.norm(p, dim, True).clamp(min=eps)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """Cosine of the angle between x1 and x2 along dim; of real numbers."""
    if x1.dtype.is_complex or x2.dtype.is_complex:
        raise RuntimeError(
            "cosine_similarity(): expected common dtype to be floating point. Got "
            f"x1={x1.dtype}, x2={x2.dtype}."
        )
    if x1.shape != x2.shape:  # dim counts in the shape of both
        x1, x2 = holdfast.broadcast_tensors(x1, x2)
    norms = [x.norm(2, dim, True).clamp(min=eps) for x in (x1, x2)]
    return ((x1 / norms[0]) * (x2 / norms[1])).sum(dim)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """p-norm of x1 - x2 + eps along the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)
