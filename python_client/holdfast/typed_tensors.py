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
        return (
            isinstance(instance, Tensor)
            and instance.dtype is cls.dtype
            and bool(instance._device_number) == (cls.package == "torch.cuda")
        )

    def __call__(cls, *args, device=None):
        if device is None:
            device = "cuda" if cls.package == "torch.cuda" else "cpu"
        if len(args) != 1 or isinstance(args[0], int):
            return _ops.empty(args or (0,), dtype=cls.dtype, device=device)
        (data,) = args
        if isinstance(data, _C.Size):
            return _ops.empty(data, dtype=cls.dtype, device=device)
        if not isinstance(data, Tensor):
            return _C.tensor(data, dtype=cls.dtype, device=device)
        if data.dtype is not cls.dtype:
            raise TypeError(f"expected {cls.__name__} (got {data.type()})")
        return _ops.detach(data)


def _types(package):
    return {
        name: _TypedTensor(
            name,
            (),
            {
                "dtype": dtype,
                "package": package,
                "__doc__": f"Tensors of {dtype}: see the module.",
            },
        )
        for dtype, name in _TYPE_NAMES.items()
    }


NAMES = _types("torch")
CUDA_NAMES = _types("torch.cuda")


@method
def new(self, *args, device=None):
    """A tensor of this one's type: of the given sizes, or with the given elements."""
    names = CUDA_NAMES if self._device_number else NAMES
    device = self.device if device is None else device
    return names[_TYPE_NAMES[self.dtype]](*args, device=device)


@function
def set_default_tensor_type(t):
    """set_default_dtype() and set_default_device() by a tensor type or its name."""
    if isinstance(t, str):
        package, _, name = t.rpartition(".")
        t = (CUDA_NAMES if package.endswith("cuda") else NAMES).get(name, t)
    if not isinstance(t, _TypedTensor):
        raise TypeError(f"invalid type object: {t!r}")
    _C.set_default_device("cuda" if t.package == "torch.cuda" else "cpu")
    set_default_dtype(t.dtype)
