# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Sessions of a PyTorch program: the package holdfast's functions, of torch.Tensors."""

import functools
import os

import holdfast
import torch
from holdfast import _C
from holdfast._structure import OnHost, put_together
from holdfast.sessions import put_kept_together

from holdfast_torch import _torch, errors

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

    All that one call keeps changes at once. None as the value drops the name. TypeError:
    something else is in it.
    """
    if hasattr(value, "state_dict"):
        value = value.state_dict()
    with errors.as_pytorchs():
        holdfast.keep(name, _of_holdfast(value, "keep"), copy=copy)


def kept(name=None):
    """What the session keeps: {name: tensor}, or what was kept as `name`.

    Tensors are of device "holdfast", over the very storages that were kept: no element
    is copied, and those that shared one storage do so again. LookupError: nothing is
    kept under the name.
    """
    with errors.as_pytorchs():
        tensors = holdfast.current_session().kept()
    return put_kept_together(tensors, name, _of_torch, torch.Tensor.cpu)


@functools.wraps(holdfast.publish)
def publish(name, tensors, durable=False, readers=None, *, writable=False):
    if hasattr(tensors, "state_dict"):
        tensors = tensors.state_dict()
    with errors.as_pytorchs():
        return holdfast.publish(
            name,
            _of_holdfast(tensors, "publish"),
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
    tensors = _of_torch({key: tensor for key, tensor, _ in items})
    return put_together(structure, tensors, torch.Tensor.cpu)


def from_holdfast(tensor):
    """A torch.Tensor of device "holdfast" over the elements of a holdfast.Tensor."""
    return _torch.from_holdfast(tensor)


def to_holdfast(tensor):
    """A holdfast.Tensor over the elements of a torch.Tensor of device "holdfast"."""
    return _torch.to_holdfast(tensor.detach())


def _of_holdfast(value, function):
    """A nested value with holdfast's tensors in place of PyTorch's."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
        if tensor.device.type == "holdfast":
            return _torch.to_holdfast(tensor.resolve_conj().resolve_neg())
        if tensor.device.type != "cpu" or tensor.layout != torch.strided:
            raise TypeError(
                f"{function}() takes strided tensors of the devices holdfast and cpu. "
                f"Got one of {tensor.device}, {tensor.layout}"
            )
        return OnHost(_torch.to_holdfast(tensor.to("holdfast")))
    if isinstance(value, dict):
        return {key: _of_holdfast(item, function) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        kind = list if isinstance(value, list) else tuple
        return kind(_of_holdfast(item, function) for item in value)
    return value


def _of_torch(tensors):
    """{key: torch.Tensor} of {key: holdfast.Tensor}. Tensors over the same memory share
    a storage, as PyTorch has to know of it."""
    largest = {}
    for tensor in tensors.values():
        place = _torch.memory_of(tensor), tensor.dtype
        if place not in largest or _end(tensor) > _end(largest[place]):
            largest[place] = tensor
    whole = {place: _torch.from_holdfast(tensor) for place, tensor in largest.items()}
    found = {}
    for key, tensor in tensors.items():
        place = _torch.memory_of(tensor), tensor.dtype
        found[key] = whole[place]
        if tensor is not largest[place]:
            found[key] = whole[place].as_strided(
                tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
            )
    return found


def _end(tensor):
    """How many elements of its memory a tensor reaches."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return tensor.storage_offset() + sum((size - 1) * step for size, step in steps) + 1
