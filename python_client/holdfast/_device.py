# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""holdfast.device: where a tensor lives, as PyTorch names it."""

from holdfast import _C


class device:
    """`device("cpu")`, `device("cuda", 0)`, `device("cuda:0")` or `device(0)`.

    `with device("cuda"):` makes tensors there that are made without device=.
    """

    __slots__ = ("type", "index")
    type: str
    index: int | None

    def __init__(self, type, index=None):
        if isinstance(type, device):
            type, index = type.type, type.index if index is None else index
        if isinstance(type, int) and not isinstance(type, bool) and type >= 0:
            type, index = "cuda", type
        if not isinstance(type, str):
            raise TypeError(f"device(): expected a str, not {type!r}")
        name, colon, number = type.partition(":")
        if colon:
            if index is not None or not number.isdigit():
                raise RuntimeError(f"Invalid device string: '{type}'")
            index = int(number)
        if name not in ("cpu", "cuda", "mps", "xpu", "meta"):
            raise RuntimeError(f"Expected one of cpu, cuda device type: '{type}'")
        object.__setattr__(self, "type", name)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name, value):
        raise AttributeError("device objects are immutable")

    def __repr__(self):
        index = f", index={self.index}" if self.index is not None else ""
        return f"device(type='{self.type}'{index})"

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other):
        if not isinstance(other, device):
            return NotImplemented
        return (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __reduce__(self):
        return device, (self.type, self.index)

    def __enter__(self):
        _entered.append(_C.default_device())
        try:
            _C.set_default_device(self)
        except BaseException:
            _entered.pop()
            raise
        return self

    def __exit__(self, *error):
        _C.set_default_device(device_of_number(_entered.pop()))


_devices = {}
_entered = []  # the defaults before each `with device(...)`


def device_of_number(number):
    """The device that the C++ client calls so: 0 the CPU, 1 the first GPU, -1 meta."""
    if number < 0:
        return device("meta")
    return device("cuda", number - 1) if number else device("cpu")


def _device_of(tensor):
    name = tensor._device_name
    found = _devices.get(name)
    if found is None:
        found = _devices[name] = device(name)
    return found


_C.Tensor.device = property(_device_of, doc="Where the tensor lives.")
_C.Tensor.is_cuda = property(lambda self: self._device_number > 0)
_C.Tensor.is_cpu = property(lambda self: self._device_number == 0)
