# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Nested values of torch.Tensors as such of holdfast.Tensors, and the way back: what
keep(), publish(), kept() and lookup() pass on."""

import collections

import torch
from holdfast._structure import OnHost, ViewOf

from holdfast_torch import _torch


def of_torch(tensors):
    """{key: torch.Tensor} of {key: holdfast.Tensor}, over the same memory."""
    return {key: _torch.from_holdfast(tensor) for key, tensor in tensors.items()}


def of_holdfast(value, function):
    """A nested value with holdfast's tensors in place of PyTorch's. Those that share a
    storage, such as tied weights, become views of one. TypeError: a tensor is of
    another device; `function` is named in it."""
    found = []
    _find(value, function, found)
    bases = {}
    for tensor in found:
        place = _place(tensor)
        if place not in bases or _end(tensor) > _end(bases[place]):
            bases[place] = tensor
    uses = collections.Counter(map(_place, found))
    shared = {
        place: _torch.to_holdfast(base)
        for place, base in bases.items()
        if uses[place] > 1
    }
    return _replaced(value, shared)


def _place(tensor):
    """Equal for tensors that can be views of one."""
    return tensor.untyped_storage().data_ptr(), tensor.dtype


def _end(tensor):
    """How many elements of its storage a tensor reaches."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return tensor.storage_offset() + sum((size - 1) * step for size, step in steps) + 1


def _find(value, function, found):
    """Appends the tensors of device "holdfast" that have elements."""
    if isinstance(value, torch.Tensor):
        if value.device.type not in ("holdfast", "cpu") or (
            value.layout != torch.strided
        ):
            raise TypeError(
                f"{function}() takes strided tensors of the devices holdfast and cpu. "
                f"Got one of {value.device}, {value.layout}"
            )
        if value.device.type == "holdfast" and value.numel():
            found.append(value.detach())
    elif isinstance(value, dict):
        for item in value.values():
            _find(item, function, found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _find(item, function, found)


def _replaced(value, shared):
    if isinstance(value, torch.Tensor):
        return _replaced_tensor(value.detach().resolve_conj().resolve_neg(), shared)
    if isinstance(value, dict):
        return {key: _replaced(item, shared) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        kind = list if isinstance(value, list) else tuple
        return kind(_replaced(item, shared) for item in value)
    return value


def _replaced_tensor(tensor, shared):
    if tensor.device.type == "cpu":
        return OnHost(_torch.to_holdfast(tensor.to("holdfast")))
    base = shared.get(_place(tensor)) if tensor.numel() else None
    if base is None:
        return _torch.to_holdfast(tensor)
    size, stride = tuple(tensor.shape), tensor.stride()
    return ViewOf(base, size, stride, tensor.storage_offset())
