# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.LongTensor and its kin: constructors and instance checks of one type.

`LongTensor(2, 3)` has that size and no particular values; `LongTensor([1, 2])` has
those elements; `isinstance(x, LongTensor)` asks for the element type.
"""

from holdfast import _C
from holdfast._registry import function, method
from holdfast.dtypes import _TYPE_NAMES, set_default_dtype

_ops = _C.ops
Tensor = _C.Tensor


class _TypedTensor(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *args, device=None):
        _C.check_device(device)
        if len(args) != 1 or isinstance(args[0], int):
            return _ops.empty(args or (0,), dtype=cls.dtype)
        (data,) = args
        if isinstance(data, _C.Size):
            return _ops.empty(data, dtype=cls.dtype)
        if not isinstance(data, Tensor):
            return _C.tensor(data, dtype=cls.dtype)
        if data.dtype is not cls.dtype:
            raise TypeError(f"expected {cls.__name__} (got {data.type()})")
        return _ops.detach(data)


NAMES = {}
for _dtype, _name in _TYPE_NAMES.items():
    NAMES[_name] = _TypedTensor(
        _name, (), {"dtype": _dtype, "__doc__": f"Tensors of {_dtype}: see the module."}
    )


@method
def new(self, *args, device=None):
    """A tensor of this one's type: of the given sizes, or with the given elements."""
    return NAMES[_TYPE_NAMES[self.dtype]](*args, device=device)


@function
def set_default_tensor_type(t):
    """set_default_dtype() by a tensor type or its name."""
    if isinstance(t, str):
        t = NAMES.get(t.rpartition(".")[2], t)
    if not isinstance(t, _TypedTensor):
        raise TypeError(f"invalid type object: {t!r}")
    set_default_dtype(t.dtype)
