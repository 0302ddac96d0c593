# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.nn.attention.flex_attention: attention whose scores a function changes.

Computed as PyTorch does where it does not compile: all scores [B, H, Q, KV] at once. A
function of scores or places is called once, with index tensors that broadcast, so that
it must be written in tensor operations, as in PyTorch.
"""

import functools
from typing import Any, NamedTuple

import holdfast
from holdfast.errors import OpError
from holdfast.missing import module_getattr

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]


class AuxRequest(NamedTuple):
    """What flex_attention(return_aux=...) is to return beside its output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for; None otherwise. Both [B, H, Q]."""

    lse: holdfast.Tensor | None = None
    max_scores: holdfast.Tensor | None = None


def noop_mask(batch, head, token_q, token_kv):
    """A mask_mod that lets every query see every key."""
    return batch.new_ones((), dtype=holdfast.bool)


def _combined(masks, combine):
    if not all(map(callable, masks)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {masks}")
    return lambda b, h, q, kv: functools.reduce(
        combine, (mask(b, h, q, kv) for mask in masks)
    )


def and_masks(*mask_mods):
    """A mask_mod: what all of them let through."""
    return _combined(mask_mods, lambda a, b: a & b)


def or_masks(*mask_mods):
    """A mask_mod: what one of them lets through."""
    return _combined(mask_mods, lambda a, b: a | b)


def _places(sizes, device):
    """Indices of [B, H, Q, KV] that broadcast to it."""
    return [
        holdfast.arange(size, device=device).reshape(
            [-1 if i == dim else 1 for i in range(4)]
        )
        for dim, size in enumerate(sizes)
    ]


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """[B, H, Q_LEN, KV_LEN] of a mask_mod (bool), or of a score_mod with scores of 0.
    B or H None: 1."""
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    places = _places(sizes, device)
    if getattr(getattr(mod_fn, "__code__", None), "co_argcount", 4) == 5:
        result = mod_fn(holdfast.zeros(sizes, device=device), *places)
    else:
        result = mod_fn(*places)
    return result.expand(sizes)


class BlockMask:
    """A mask_mod with the sizes that it is for: `shape` is (B, H, Q_LEN, KV_LEN).

    `to_dense()` tells for blocks of BLOCK_SIZE whether anything in them is seen.
    """

    def __init__(self, mask_mod, shape, device, BLOCK_SIZE):
        self.mask_mod, self.shape, self.device = mask_mod, shape, device
        self.BLOCK_SIZE = BLOCK_SIZE
        self.seq_lengths = shape[2:]

    def _mask(self):
        B, H, *lengths = self.shape
        return create_mask(self.mask_mod, B, H, *lengths, self.device)

    def to_dense(self):
        """int32 [B, H, query blocks, key blocks]: 1 where something is seen."""
        mask = self._mask()
        # A last block that is not full is filled with what is not seen.
        missing = [-n % block for n, block in zip(self.shape[2:], self.BLOCK_SIZE)]
        mask = holdfast.nn.functional.pad(mask.int(), (0, missing[1], 0, missing[0]))
        for dim, block in zip((3, 2), reversed(self.BLOCK_SIZE)):
            mask = mask.unflatten(dim, (-1, block)).amax(dim + 1)
        return mask

    def sparsity(self):
        """The percentage of blocks in which nothing is seen."""
        seen = self.to_dense()
        return 100 * (1 - seen.sum().item() / seen.numel())

    def to(self, device):
        """The same for another device."""
        return BlockMask(self.mask_mod, self.shape, device, self.BLOCK_SIZE)

    def __repr__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(
    mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=128, **options
):
    """A BlockMask of `mask_mod(b, h, q_idx, kv_idx)`. B or H None: 1, for all."""
    if isinstance(BLOCK_SIZE, int):
        BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE)
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    return BlockMask(mask_mod, shape, device, tuple(BLOCK_SIZE))


def _check(query, key, value, block_mask, enable_gqa):
    if not query.dim() == key.dim() == value.dim() == 4:
        raise ValueError("flex_attention: query, key and value must be 4D tensors.")
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.size(-1)} and E={key.size(-1)}."
        )
    if query.size(1) != key.size(1) and not enable_gqa:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got Hq="
            f"{query.size(1)} and Hkv={key.size(1)}. Try setting enable_gqa=True for "
            "GQA."
        )
    if block_mask is None:
        return
    lengths = (query.size(2), key.size(2))
    if any(mine > theirs for mine, theirs in zip(lengths, block_mask.seq_lengths)):
        raise OpError(
            f"[flex_attention] the block_mask is for {block_mask.seq_lengths} queries "
            f"and keys. Got {lengths}."
        )


def _with_heads(tensor, heads):
    """Keys or values of groups of heads for each of them."""
    return tensor.repeat_interleave(heads // tensor.size(1), 1)


def flex_attention(
    query,
    key,
    value,
    score_mod=None,
    block_mask=None,
    scale=None,
    enable_gqa=False,
    return_lse=False,
    kernel_options=None,
    *,
    return_aux=None,
) -> Any:
    """softmax(score_mod(query key^T * scale)) value: [B, H, Q, Ev].

    query [B, H, Q, E], key [B, Hkv, KV, E], value [B, Hkv, KV, Ev];
    score_mod(score, b, h, q_idx, kv_idx) gives other scores; block_mask
    (create_block_mask) hides keys: a query that sees none gives zeros. `scale` None:
    1 / sqrt(E). return_lse: also the logarithm of each query's sum [B, H, Q];
    return_aux (AuxRequest): (output, AuxOutput). `kernel_options` are taken and change
    nothing. ValueError for sizes that do not fit.
    """
    _check(query, key, value, block_mask, enable_gqa)
    B, H, Q, E = query.shape
    KV = key.size(2)
    scale = E**-0.5 if scale is None else scale
    key, value = _with_heads(key, H), _with_heads(value, H)
    scores = query @ key.transpose(-2, -1) * scale
    if score_mod is not None:
        scores = score_mod(scores, *_places((B, H, Q, KV), query.device))
    if block_mask is not None:
        seen = block_mask.mask_mod(*_places((B, H, Q, KV), query.device))
        scores = scores.masked_fill(~seen, -float("inf"))
    largest = scores.amax(-1, keepdim=True)
    # A query that sees nothing: exp(-inf - 0) are zeros, and so is what it gets.
    weights = (scores - largest.masked_fill(largest == -float("inf"), 0.0)).exp()
    total = weights.sum(-1, keepdim=True)
    result = (weights / total.masked_fill(total == 0, 1.0)).to(value.dtype) @ value
    lse = scores.logsumexp(-1)
    if return_aux is not None:
        return result, AuxOutput(
            lse if return_aux.lse else None,
            largest.squeeze(-1) if return_aux.max_scores else None,
        )
    return (result, lse) if return_lse else result


__getattr__ = module_getattr("torch.nn.attention.flex_attention")
