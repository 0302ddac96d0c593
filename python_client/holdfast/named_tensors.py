# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Named tensors: one copy on the daemon, for every session that looks it up."""

from typing import NamedTuple

from holdfast import _C
from holdfast._registry import function
from holdfast._structure import put_together, take_apart


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
    found, structure = take_apart(tensors, "publish")
    if not found:
        raise TypeError("publish() needs at least one tensor")
    if isinstance(readers, str) and readers != "all":
        raise TypeError(f"readers must be None, 'all' or a list of users: {readers!r}")
    everybody = readers == "all"
    version = _C.publish(
        name,
        tuple(found),
        tuple(found.values()),
        structure,
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
    return put_together(structure, {key: tensor for key, tensor, _ in items})


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
