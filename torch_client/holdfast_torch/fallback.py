# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Operators that the CPU computes, named one by one: the arguments come from the daemon
and the results go back, two round trips a call. A warning once for each operator;
HOLDFAST_FALLBACK=error makes it an error. No operator of PyTorch's core is here."""

import os
import warnings

import torch
from torch.utils._pytree import tree_map

_NO_SHAPE_GRADIENT = "the daemon has no derivative of a sample by a gamma's shape"
_NO_LANCZOS = "the daemon resizes with no Lanczos window"

# Operator -> why the daemon does not compute it.
LISTED = {
    "_standard_gamma_grad": _NO_SHAPE_GRADIENT,
    "_dirichlet_grad": _NO_SHAPE_GRADIENT,
    "_upsample_lanczos2d_aa": _NO_LANCZOS,
    "_upsample_lanczos2d_aa_backward": _NO_LANCZOS,
}

_warned = set()


class FallbackError(NotImplementedError):
    """HOLDFAST_FALLBACK=error, and an operator that only the CPU computes."""


def _tell(name):
    text = (
        f"aten::{name} runs on the CPU: {LISTED[name]}. Its arguments are read from "
        "the daemon and its results are sent back."
    )
    if os.environ.get("HOLDFAST_FALLBACK") == "error":
        raise FallbackError(text + " HOLDFAST_FALLBACK=error forbids that.")
    if name not in _warned:
        _warned.add(name)
        warnings.warn(text, UserWarning, stacklevel=3)


def _to(device):
    def move(leaf):
        if isinstance(leaf, torch.Tensor):
            return leaf.to(device)
        return torch.device(device) if isinstance(leaf, torch.device) else leaf

    return move


def kernel_of(name, schema):
    """A kernel for `name` that calls the CPU's."""
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
    written = [
        (i, a.name)
        for i, a in enumerate(schema.arguments)
        if a.alias_info is not None and a.alias_info.is_write
    ]

    def kernel(*args, **kwargs):
        _tell(name)
        there = tree_map(_to("cpu"), (args, kwargs))
        result = operator(*there[0], **there[1])
        if not written:
            return tree_map(_to("holdfast"), result)
        ours = []
        for i, key in written:
            place = (0, i) if i < len(args) else (1, key)
            mine, its = (x[place[0]][place[1]] for x in ((args, kwargs), there))
            if mine.shape != its.shape:
                mine.resize_(its.shape)
            ours.append(mine.copy_(its))
        return ours[0] if len(ours) == 1 else tuple(ours)

    return kernel
