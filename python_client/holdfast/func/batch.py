# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""vmap: a function of one example as a function of a batch."""

import functools

from holdfast import _C, random
from holdfast.shapes import stack
from holdfast.utils._pytree import tree_flatten, tree_unflatten

TYPE_CHECKING = False  # to checkers it is typing's, whose import takes its time
if TYPE_CHECKING:
    from typing import Any

Tensor = _C.Tensor


def _broadcast(dims, spec, name):
    """One entry of `dims`, a prefix of the nest, per leaf."""
    if spec.type is None or dims is None or isinstance(dims, int):
        return [dims] * spec.num_leaves
    children = list(dims.values()) if isinstance(dims, dict) else list(dims)
    if isinstance(dims, dict) and issubclass(spec.type, dict):
        children = [dims[k] for k in spec.context]
    if len(children) != spec.num_children:
        raise ValueError(
            f"vmap({name}): in_dims or out_dims must fit the structure of what they "
            f"are for. Got {dims!r} for {spec}."
        )
    flat = []
    for child, child_spec in zip(children, spec.children()):
        flat += _broadcast(child, child_spec, name)
    return flat


def _mapped_dim(x, dim, name):
    if not isinstance(dim, int) or isinstance(dim, bool):
        raise ValueError(f"vmap({name}): a dimension must be an int or None: {dim!r}")
    if not isinstance(x, Tensor):
        raise ValueError(
            f"vmap({name}): Got in_dim={dim} for an input but the input is of type "
            f"{type(x)}. We cannot vmap over non-Tensor arguments, please use None as "
            "the respective in_dim"
        )
    if not -x.dim() <= dim < x.dim():
        raise ValueError(
            f"vmap({name}): Got in_dim={dim} for some input, but that input is a "
            f"Tensor of dimensionality {x.dim()} so expected in_dim to satisfy "
            f"-{x.dim()} <= in_dim < {x.dim()}."
        )
    return dim % x.dim()


def _batch_size(leaves, dims, name):
    sizes = [x.shape[d] for x, d in zip(leaves, dims) if d is not None]
    if not sizes:
        raise ValueError(
            f"vmap({name}): at least one input must be a Tensor with a mapped "
            "dimension."
        )
    if any(s != sizes[0] for s in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, "
            f"got sizes {sizes} for the mapped dimension"
        )
    if sizes[0] == 0:
        raise ValueError(
            f"vmap({name}): a batch of no examples tells nothing about the result."
        )
    return sizes[0]


class _Randomness:
    """What random ops in the examples may do."""

    def __init__(self, mode):
        if mode not in ("error", "different", "same"):
            raise RuntimeError(
                "Only allowed values for randomness are 'error', 'different', or "
                f"'same'. Got {mode}"
            )
        self._mode = mode
        self._state = None if mode == "different" else random.get_rng_state()

    def before_another(self):
        if self._mode == "same":
            random.set_rng_state(self._state)

    def finish(self):
        if self._mode != "error":
            return
        if (random.get_rng_state() != self._state).any():
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please "
                "either use the 'same' or 'different' randomness flags on vmap or "
                "perform the randomness operation out of vmap"
            )


def _stacked(results, dim, name):
    if dim is None:
        return results[0]
    if not isinstance(results[0], Tensor):
        raise ValueError(
            f"vmap({name}): `{name}` must only return Tensors, got type "
            f"{type(results[0])}. Did you mean to set out_dims= to None for output?"
        )
    return stack(results, dim)


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None) -> "Any":
    """A function that applies func to every example of a batch.

    It is a loop: func runs once per example, and results are stacked; as many ops
    as examples, where PyTorch has one of a batch. in_dims and out_dims: the
    batch's dimension (None: not mapped) per argument and result, nested as they
    are. randomness: "error" (random ops are refused, after the fact), "different"
    or "same" for every example. chunk_size is accepted. As torch.func.vmap.
    """
    name = getattr(func, "__name__", type(func).__name__)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        # Keyword arguments are mapped over their first dimension.
        args_leaves, args_spec = tree_flatten(args)
        named_leaves, named_spec = tree_flatten(kwargs)
        leaves = args_leaves + named_leaves
        dims = _broadcast(in_dims, args_spec, name) + [
            0 if isinstance(x, Tensor) else None for x in named_leaves
        ]
        dims = [
            None if d is None else _mapped_dim(x, d, name) for x, d in zip(leaves, dims)
        ]
        size = _batch_size(leaves, dims, name)
        noise = _Randomness(randomness)
        parts = [[x] * size if d is None else x.unbind(d) for x, d in zip(leaves, dims)]
        examples, out_spec = [], None
        for i in range(size):
            if i:
                noise.before_another()
            example = [p[i] for p in parts]
            given = tree_unflatten(example[: len(args_leaves)], args_spec)
            named = tree_unflatten(example[len(args_leaves) :], named_spec)
            results, got = tree_flatten(func(*given, **named))
            if out_spec is not None and got != out_spec:
                raise ValueError(
                    f"vmap({name}): every example must give the same structure. Got "
                    f"{out_spec} and {got}."
                )
            out_spec = got
            examples.append(results)
        noise.finish()
        places = _broadcast(out_dims, out_spec, name)
        return tree_unflatten(
            [_stacked(list(r), d, name) for r, d in zip(zip(*examples), places)],
            out_spec,
        )

    return wrapper
