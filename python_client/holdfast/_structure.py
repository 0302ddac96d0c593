# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Nested values taken apart into tensors and a description, and put together again:
what publish() and keep() have the daemon store."""

import json
from typing import NamedTuple

from holdfast import _C


class OnHost(NamedTuple):
    """Stands in a nested value for a tensor that a program has in its own memory,
    such as PyTorch's counts of an optimizer's steps: `tensor` is a copy of it."""

    tensor: object


class ViewOf(NamedTuple):
    """Stands for a tensor that shares the memory of another one in the value: both are
    made of `base`, so that they share it again when they are put together."""

    base: object
    size: tuple
    stride: tuple
    offset: int


def take_apart(value, function, *, flat=False):
    """(tensors by key, description as bytes). `function` is named in TypeErrors.

    flat: the description makes one dict of the tensors by their keys.
    """
    tensors = {}
    structure = _describe(value, "", tensors, function)
    if flat:
        structure = {"dict": [[key, {"tensor": key}] for key in tensors]}
    return tensors, json.dumps(structure, separators=(",", ":")).encode()


def put_together(description, tensors, on_host=None):
    """The nested value. on_host(tensor) is put where OnHost stood, the tensor itself
    where that is None."""
    return _rebuild(json.loads(description), tensors, on_host or (lambda t: t))


def tensor_keys(description):
    """Keys of the tensors in it."""
    found, left = [], [json.loads(description)]
    while left:
        ((kind, content),) = left.pop().items()
        if kind in ("tensor", "host_tensor"):
            found.append(content)
        elif kind == "view":
            found.append(content[0])
        elif kind == "dict":
            left.extend(item for _, item in content)
        elif kind in ("list", "tuple"):
            left.extend(content)
    return found


def _describe(value, path, found, function):
    """What _rebuild makes `value` of; its tensors go to `found`, by key."""
    if isinstance(value, _C.Tensor):
        return {"tensor": _add(value, path, found)}
    if isinstance(value, OnHost):
        return {"host_tensor": _add(value.tensor, path, found)}
    if isinstance(value, ViewOf):
        key = _add(value.base, path, found, shared=True)
        return {"view": [key, list(value.size), list(value.stride), value.offset]}
    if isinstance(value, dict):
        items = []
        for key, item in value.items():
            if not isinstance(key, (str, int, float, bool, type(None))):
                raise TypeError(
                    f"{function}(): keys must be str or numbers, not "
                    f"{type(key).__name__} ({path})"
                )
            items.append([key, _describe(item, _join(path, key), found, function)])
        return {"dict": items}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        items = enumerate(value)
        return {kind: [_describe(v, _join(path, i), found, function) for i, v in items]}
    if isinstance(value, (str, int, float, bool, type(None))):
        return {"value": value}
    raise TypeError(
        f"{function}() takes tensors, numbers, strings and dicts, lists and tuples of "
        f"them, not {type(value).__name__} ({path or 'at the top'})"
    )


def _add(tensor, path, found, shared=False):
    """Puts the tensor into `found`, once; returns its key."""
    for known, other in found.items() if shared else ():
        if other is tensor:
            return known
    key, number = path or "tensor", 1
    while key in found:  # {"a.b": ..., "a": {"b": ...}}
        number += 1
        key = f"{path}#{number}"
    found[key] = tensor
    return key


def _join(path, key):
    return f"{path}.{key}" if path else str(key)


def _rebuild(structure, tensors, on_host):
    ((kind, content),) = structure.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "host_tensor":
        return on_host(tensors[content])
    if kind == "view":
        key, size, stride, offset = content
        return tensors[key].as_strided(size, stride, offset)
    if kind == "dict":
        return {key: _rebuild(item, tensors, on_host) for key, item in content}
    if kind in ("list", "tuple"):
        items = [_rebuild(item, tensors, on_host) for item in content]
        return items if kind == "list" else tuple(items)
    return content
