# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What the functions that checkpoints name do here."""

from collections import OrderedDict

import holdfast
from holdfast import _C
from holdfast.errors import UnsupportedError

from .storages import extent

_MAX_RANK = 64


class StorageType:
    """Stands for torch.FloatStorage and its kin."""

    def __init__(self, dtype):
        self.dtype = dtype


class StoredElements:
    """A storage of a file: its tensor is made when the first tensor needs it."""

    def __init__(self, dtype, count, make):
        self.dtype, self.count = dtype, count
        self._make, self._flat = make, None

    def flat(self):
        if self._flat is None:
            self._flat = self._make()
        return self._flat


def tensor_over(storage, offset, size, stride):
    """The tensor with that layout over a StoredElements; ValueError if it has none."""
    if not isinstance(storage, StoredElements):
        raise TypeError(f"a tensor over {type(storage).__name__}")
    size, stride = tuple(size), tuple(stride)
    numbers = (offset, *size, *stride)
    if (
        len(size) != len(stride)
        or len(size) > _MAX_RANK
        or not all(type(n) is int and 0 <= n < 1 << 62 for n in numbers)
    ):
        raise ValueError(f"a tensor of size {size}, strides {stride}, offset {offset}")
    needed = extent(offset, size, stride)
    if needed > storage.count:
        raise ValueError(
            f"a tensor of size {size}, strides {stride}, offset {offset} in a storage "
            f"of {storage.count} elements"
        )
    with holdfast.no_grad():
        flat = storage.flat()
        if size == tuple(flat.shape) and stride == (1,):
            return _C.ops.detach(flat)
        return _C.ops.detach(_C.ops.as_strided(flat, size, stride, offset))


def _flag(tensor, requires_grad):
    """What the file says, if the tensor can have it."""
    if type(requires_grad) not in (bool, int):
        raise TypeError(f"requires_grad is a {type(requires_grad).__name__}")
    if requires_grad and not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"requires_grad of a tensor of {tensor.dtype}")
    return bool(requires_grad)


def _marked(tensor, requires_grad):
    return tensor.requires_grad_() if _flag(tensor, requires_grad) else tensor


def rebuild_tensor(
    storage, storage_offset, size, stride, requires_grad=False, *hooks_and_metadata
):
    tensor = tensor_over(storage, storage_offset, size, stride)
    return _marked(tensor, requires_grad)


def rebuild_parameter(data, requires_grad, backward_hooks=None, state=None):
    if not isinstance(data, holdfast.Tensor):
        raise TypeError(f"a parameter of {type(data).__name__}")
    parameter = holdfast.nn.Parameter(data, _flag(data, requires_grad))
    return parameter if state is None else _with_state(parameter, state)


def rebuild_from_type(func, new_type, args, state):
    value = func(*args)
    if type(value) is not new_type:
        if not (isinstance(new_type, type) and issubclass(new_type, holdfast.Tensor)):
            raise TypeError(f"a tensor of type {new_type!r}")
        value = holdfast.Tensor._make_subclass(new_type, value, value.requires_grad)
    return _with_state(value, state)


def _with_state(tensor, state):
    if isinstance(state, tuple):  # (__dict__, slots)
        state = state[0]
    if type(state) not in (dict, OrderedDict):
        raise TypeError("a tensor's attributes that are no dict")
    tensor.__dict__.update(state)
    return tensor


def _unsupported(name):
    def rebuild(*args):
        raise UnsupportedError(f"[load] holdfast has no {name} tensors.")

    return rebuild


TENSOR_FUNCTIONS = {
    ("torch._utils", "_rebuild_tensor"): rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _unsupported("untyped"),
    ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): rebuild_parameter,
    ("torch._tensor", "_rebuild_from_type_v2"): rebuild_from_type,
    ("torch._utils", "_rebuild_sparse_tensor"): _unsupported("sparse"),
    ("torch._utils", "_rebuild_sparse_csr_tensor"): _unsupported("sparse CSR"),
    ("torch._utils", "_rebuild_qtensor"): _unsupported("quantized"),
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): _unsupported("meta"),
}
