# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Storages as bytes, and bytes as storages of any dtype: what torch.save, torch.load,
pickle and deepcopy need beside the device's operators."""

import functools

import holdfast
import torch

from holdfast_torch.composites import _DTYPES


def reinterpreted(tensor, count, dtype):
    """The first bytes of a holdfast.Tensor's memory as `count` elements of a
    torch.dtype: a flat holdfast.Tensor over the same memory (csrc/reinterpret.cc)."""
    target = _DTYPES[dtype]
    have = count * target.itemsize // tensor.dtype.itemsize
    with holdfast.no_grad():
        return tensor.as_strided((have,), (1,), 0).view(target)


def install():
    """Pickles hold storages in PyTorch's older format, whose C++ functions wrap a
    device's address as a tensor: for ours they are called on the host's bytes."""
    kind = torch.UntypedStorage
    kind._write_file = _on_host(kind._write_file, _write_file)
    kind._set_from_file = _on_host(kind._set_from_file, _set_from_file)


def _on_host(original, ours):
    @functools.wraps(original)
    def method(self, *args):
        if self.device.type == "holdfast":
            return ours(original, self, *args)
        return original(self, *args)

    return method


def _write_file(original, storage, *args):
    return original(storage.cpu(), *args)


def _set_from_file(original, storage, *args):
    host = original(torch.UntypedStorage(storage.nbytes()), *args)
    return storage.copy_(host)
