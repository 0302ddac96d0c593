# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Sessions of a PyTorch program: the package holdfast's functions, of torch.Tensors."""

import functools
import os

import holdfast
import torch
from holdfast import _C
from holdfast._structure import put_together
from holdfast.sessions import put_kept_together

from holdfast_torch import _torch, errors
from holdfast_torch.structures import of_holdfast, of_torch

# A child has a session of its own (holdfast's client sees to that); what this library
# remembered is the parent's.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_torch.forget_session)


@functools.wraps(holdfast.connect)
def connect(*args, **kwargs):
    with errors.as_pytorchs():
        session = holdfast.connect(*args, **kwargs)
    _torch.forget_session()
    return session


def close(keep=False):
    """Leaves the session; with keep it stays on the daemon. The next tensor of device
    "holdfast" is made in a new one."""
    with errors.as_pytorchs():
        holdfast.disconnect(keep=keep)
    _torch.forget_session()


def forget():
    """For programs that choose the session with holdfast.set_default_session(): asks
    again where the next tensor is made."""
    _torch.forget_session()


def detach():
    """Leaves the session on the daemon, under its name, with what it keeps. What was
    submitted is done first. RuntimeError: the session has no name."""
    with errors.as_pytorchs():
        holdfast.detach()
    _torch.forget_session()


def current_session():
    """The session where tensors are made, which is opened if need be: its `name`,
    `address`, `transport`, `device`, `attached`."""
    with errors.as_pytorchs():
        return holdfast.current_session()


def cancel():
    """Calls back every op submitted so far that the daemon has not done. Reading what
    they would have made is an error. Returns how many were dropped."""
    with errors.as_pytorchs():
        return holdfast.cancel()


def status():
    """The session's figures as the daemon has them, a dict: "name", "transport",
    "tensors", "bytes_in_use", "ops", "device_seconds" and so on."""
    from holdfast import memory

    with errors.as_pytorchs():
        return memory._mine()


def keep(name, value, *, copy=False):
    """Keeps tensors on the daemon after this program ends.

    value   a tensor, what has a state_dict (a module, an optimizer, a scheduler), or
            dicts, lists and tuples of tensors, numbers, strings, booleans and None.
            Tensors of the CPU in it, such as the counts of Adam's steps, are copied as
            they are now, and kept() returns them to the CPU.
    copy    False: tensors of device "holdfast" are kept themselves, with all that is
            written to them later. True: copies as of now, a checkpoint whose parts
            belong together.

    All that one call keeps changes at once. None as the value drops the name.
    TypeError: something else is in it.
    """
    if hasattr(value, "state_dict"):
        value = value.state_dict()
    with errors.as_pytorchs():
        holdfast.keep(name, of_holdfast(value, "keep"), copy=copy)


def kept(name=None):
    """What the session keeps: {name: tensor}, or what was kept as `name`.

    Tensors are of device "holdfast", over the very storages that were kept: no element
    is copied, and those that shared one storage do so again. LookupError: nothing is
    kept under the name.
    """
    with errors.as_pytorchs():
        tensors = holdfast.current_session().kept()
    return put_kept_together(tensors, name, of_torch, torch.Tensor.cpu)


@functools.wraps(holdfast.publish)
def publish(name, tensors, durable=False, readers=None, *, writable=False):
    if hasattr(tensors, "state_dict"):
        tensors = tensors.state_dict()
    with errors.as_pytorchs():
        return holdfast.publish(
            name,
            of_holdfast(tensors, "publish"),
            durable,
            readers,
            writable=writable,
        )


def lookup(name, version=None, *, owner=None):
    """The tensors published under a name, put together as they were published, over
    the daemon's one copy, whoever published it: a program of PyTorch or of the package
    holdfast. To write to one is an error unless it was published with writable=True.

    version, owner   as of holdfast.lookup(). LookupError: no such name or permission.
    """
    if version is not None and version < 1:
        raise ValueError(f"versions count from 1: {version!r}")
    with errors.as_pytorchs():
        _, structure, items = _C.lookup(name, version or 0, owner or "")
    tensors = of_torch({key: tensor for key, tensor, _ in items})
    return put_together(structure, tensors, torch.Tensor.cpu)


def from_holdfast(tensor):
    """A torch.Tensor of device "holdfast" over the elements of a holdfast.Tensor."""
    return _torch.from_holdfast(tensor)


def to_holdfast(tensor):
    """A holdfast.Tensor over the elements of a torch.Tensor of device "holdfast"."""
    return _torch.to_holdfast(tensor.detach())
