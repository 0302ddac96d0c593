# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Named tensors: one copy on the daemon, for every session that looks it up."""

import json
from typing import NamedTuple

from holdfast import _C
from holdfast._registry import function


class Published(NamedTuple):
    """One version of a name, as publish() and published() tell it."""

    name: str
    owner: str  # the user who published it
    version: int
    tensors: int  # how many
    bytes: int  # of the daemon's memory
    durable: bool
    writable: bool
    saved: bool  # this version is on disk
    time: float  # of publishing, seconds since 1970
    readable_by_all: bool  # this and `readers` only the owner is told
    readers: tuple


@function
def publish(name, tensors, durable=False, readers=None, *, writable=False):
    """Makes `tensors` the next version of a name on the daemon; returns a Published.

    Other sessions get them with lookup(), without a copy each, for as long as they
    like: also when this program has ended and when newer versions have come. A
    version appears all at once. The daemon copies the elements (memory of the
    publisher's user) and nobody can write the copies.

    tensors   a tensor, a module (its state_dict), or dicts, lists and tuples of
              tensors, numbers, strings, booleans and None, such as a state_dict.
    durable   returns when the version is on disk, which survives the daemon; until
              then others see the version before. Needs a daemon with --state_dir.
    readers   who may look it up beside this user: None for nobody, "all", or a list
              of users.
    writable  the name stands for these very tensors: whoever looks them up shares
              and may write them.

    TypeError: something else is among the tensors. RuntimeError: the daemon cannot
    keep it (too many tensors, no --state_dir, a full disk); then nothing changed.
    """
    if hasattr(tensors, "state_dict"):
        tensors = tensors.state_dict()
    found = {}
    structure = _describe(tensors, "", found)
    if not found:
        raise TypeError("publish() needs at least one tensor")
    if isinstance(readers, str) and readers != "all":
        raise TypeError(f"readers must be None, 'all' or a list of users: {readers!r}")
    everybody = readers == "all"
    version = _C.publish(
        name,
        tuple(found),
        tuple(found.values()),
        json.dumps(structure, separators=(",", ":")).encode(),
        durable,
        writable,
        everybody,
        () if everybody or readers is None else tuple(readers),
    )
    return Published(*version)


@function
def lookup(name, version=None, *, owner=None):
    """The tensors published under a name, put together as they were published.

    They are leaves that require no gradient, over the daemon's one copy: ops read
    them in place, and writing to one is an error unless it was published with
    writable=True. They stay what they are when newer versions come.

    version   None for the latest. An older one is there while somebody holds its
              tensors.
    owner     the user who published it; None: this one.

    LookupError: there is no such name, version or permission.
    """
    if version is not None and version < 1:
        raise ValueError(f"versions count from 1: {version!r}")
    _, structure, items = _C.lookup(name, version or 0, owner or "")
    return _rebuild(json.loads(structure), {key: tensor for key, tensor, _ in items})


@function
def published():
    """The latest versions of all names that this user may look up: Published."""
    return [Published(*version) for version in _C.published()]


@function
def unpublish(name):
    """Drops a name of this user's, from the daemon's disk too.

    Sessions keep the tensors that they have looked up. LookupError: there is no
    such name.
    """
    _C.unpublish(name)


def _describe(value, path, found):
    """What _rebuild makes `value` of; its tensors go to `found`, by key."""
    if isinstance(value, _C.Tensor):
        key, number = path or "tensor", 1
        while key in found:  # {"a.b": ..., "a": {"b": ...}}
            number += 1
            key = f"{path}#{number}"
        found[key] = value
        return {"tensor": key}
    if isinstance(value, dict):
        items = []
        for key, item in value.items():
            if not isinstance(key, (str, int, float, bool, type(None))):
                raise TypeError(
                    f"publish(): keys must be str or numbers, not "
                    f"{type(key).__name__} ({path})"
                )
            items.append([key, _describe(item, _join(path, key), found)])
        return {"dict": items}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {
            kind: [_describe(v, _join(path, i), found) for i, v in enumerate(value)]
        }
    if isinstance(value, (str, int, float, bool, type(None))):
        return {"value": value}
    raise TypeError(
        "publish() takes tensors, numbers, strings and dicts, lists and tuples of "
        f"them, not {type(value).__name__} ({path or 'at the top'})"
    )


def _join(path, key):
    return f"{path}.{key}" if path else str(key)


def _rebuild(structure, tensors):
    ((kind, content),) = structure.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {key: _rebuild(item, tensors) for key, item in content}
    if kind in ("list", "tuple"):
        items = [_rebuild(item, tensors) for item in content]
        return items if kind == "list" else tuple(items)
    return content
