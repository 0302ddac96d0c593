# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The pickle in a checkpoint: Python's, with PyTorch's names for what is ours.

Tensors are calls of PyTorch's functions on storages, which the pickle names by
number; their elements lie beside it in the archive.
"""

import io
import pickle
from collections import OrderedDict
from types import BuiltinFunctionType, FunctionType

import holdfast
from holdfast import _C

from . import names
from .storages import STORAGE_NAMES, extent

_STORAGE_OF = {name: storage for storage, name in STORAGE_NAMES.items()}


class Foreign:
    """Stands for a name that is written and never looked up."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self):
        raise TypeError(f"{self.module}.{self.name} is only a name")


_REBUILD_TENSOR = Foreign("torch._utils", "_rebuild_tensor_v2")
_REBUILD_PARAMETER = Foreign("torch._utils", "_rebuild_parameter")
_REBUILD_TYPE = Foreign("torch._tensor", "_rebuild_from_type_v2")
_DEVICE = Foreign("torch", "device")


class Storage:
    """A storage as far as the tensors that are saved look at it."""

    def __init__(self, key, tensor):
        self.key = key
        self.tensor = tensor  # one of them; it keeps the memory alive
        self.dtype = tensor.dtype
        self.count = 0
        self.patches = []  # where the pickle says `count`


class _Count:
    """The number of elements of a storage, known when all tensors are."""

    def __init__(self, storage):
        self.storage = storage


class CheckpointPickler(pickle._Pickler):
    """Writes the pickle; `storages` lists what it names, in order.

    The pickler written in Python, since names that nothing imports are beyond the
    other.
    """

    dispatch = dict(pickle._Pickler.dispatch)

    def __init__(self):
        self._out = io.BytesIO()
        super().__init__(self._out, protocol=2)
        self.storages = {}

    def pickled(self, obj):
        """The bytes of `obj`'s pickle."""
        try:
            self.dump(obj)
        except RecursionError:
            raise ValueError(
                "[save] the object must not be nested as deeply. Flatten it, or raise "
                "sys.setrecursionlimit()."
            ) from None
        except (pickle.PicklingError, AttributeError) as error:
            # What C's pickler says, and more to the point.
            raise pickle.PicklingError(f"[save] {error}") from None
        data = self._out.getbuffer()
        for storage in self.storages.values():
            for position in storage.patches:
                data[position : position + 8] = storage.count.to_bytes(8, "little")
        return data

    # ---- what differs from pickle

    def persistent_id(self, obj):
        if type(obj) is not Storage:
            return None
        kind = Foreign("torch", _STORAGE_OF[obj.dtype.name])
        return ("storage", kind, obj.key, self.location(obj.tensor), _Count(obj))

    @staticmethod
    def location(tensor):
        """PyTorch's name of the device, for the file."""
        device = tensor.device
        if device.type == "cpu":
            return "cpu"
        return f"{device.type}:{device.index or 0}"

    def reducer_override(self, obj):
        if isinstance(obj, holdfast.Tensor):
            return self._reduce_tensor(obj)
        if type(obj) is holdfast.device:
            parts = (obj.type,) if obj.index is None else (obj.type, obj.index)
            return _DEVICE, parts
        if type(obj) is holdfast.Size:
            return Foreign("torch", "Size"), (tuple(obj),)
        return NotImplemented

    def _reduce_tensor(self, tensor):
        attributes = dict(tensor.__dict__)
        kind = type(tensor)
        if issubclass(kind, holdfast.nn.Parameter):
            data = holdfast.Tensor._make_subclass(holdfast.Tensor, tensor)
            rebuild = _REBUILD_PARAMETER
            arguments = (data, tensor.requires_grad, OrderedDict())
            kind_as_rebuilt = holdfast.nn.Parameter
        else:
            rebuild, arguments = _REBUILD_TENSOR, self._layout(tensor)
            kind_as_rebuilt = holdfast.Tensor
            if issubclass(kind, holdfast.nn.Buffer):
                kind, attributes = holdfast.Tensor, {}
        if kind is kind_as_rebuilt and not attributes:
            return rebuild, arguments
        return _REBUILD_TYPE, (rebuild, kind, arguments, attributes)

    def _layout(self, tensor):
        shape, stride = tuple(tensor.shape), tuple(tensor.stride())
        offset = tensor.storage_offset()
        identity = tensor._storage_id, tensor.dtype.name
        storage = self.storages.get(identity)
        if storage is None:
            storage = Storage(str(len(self.storages)), tensor)
            self.storages[identity] = storage
        storage.count = max(storage.count, extent(offset, shape, stride))
        return (
            storage,
            offset,
            shape,
            stride,
            bool(tensor.requires_grad),
            OrderedDict(),
        )

    def save_count(self, obj):
        # Of fixed size, to be filled in.
        self.write(pickle.LONG1 + b"\x08")
        obj.storage.patches.append(self._out.tell())
        self.write(bytes(8))

    def save_foreign(self, obj):
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())

    def save_global(self, obj, name=None):
        known = names.torch_name(obj)
        if known is None:
            return super().save_global(obj, name)
        self.save_foreign(Foreign(*known))
        self.memoize(obj)

    def save_type(self, obj):
        if obj in (type(None), type(NotImplemented), type(...)):
            return super().save_type(obj)
        return self.save_global(obj)

    dispatch[_Count] = save_count
    dispatch[Foreign] = save_foreign
    dispatch[type] = save_type
    dispatch[FunctionType] = save_global
    dispatch[BuiltinFunctionType] = save_global
    dispatch[_C.dtype] = save_global
