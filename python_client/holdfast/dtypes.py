# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Element types: PyTorch's names, conversion of tensors, promotion."""

import numbers

from holdfast import _C
from holdfast._device import device as _device
from holdfast._registry import both, function, method, overload
from holdfast.memory_formats import preserve_format

_ops = _C.ops
Tensor = _C.Tensor

# Every name of PyTorch's for the types that Holdfast knows.
NAMES = {
    "bool": _C.bool,
    "uint8": _C.uint8,
    "int8": _C.int8,
    "int16": _C.int16,
    "short": _C.int16,
    "int32": _C.int32,
    "int": _C.int32,
    "int64": _C.int64,
    "long": _C.int64,
    "float16": _C.float16,
    "half": _C.float16,
    "bfloat16": _C.bfloat16,
    "float32": _C.float32,
    "float": _C.float32,
    "float64": _C.float64,
    "double": _C.float64,
    "complex64": _C.complex64,
    "cfloat": _C.complex64,
    "complex128": _C.complex128,
    "cdouble": _C.complex128,
}


def _convert(tensor, dtype, device=None, copy=False):
    """`device`: its number, None for the tensor's own."""
    moves = device is not None and tensor._device_number != device
    if tensor.dtype is not dtype:
        tensor = _ops.to(tensor, dtype)
    elif copy and not moves:
        return _ops.clone(tensor)
    return _C.move_to(tensor, device) if moves else tensor


def _conversion(name, dtype):
    def convert(self, memory_format=None):
        return _convert(self, dtype)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"This tensor as {dtype.name}."
    setattr(Tensor, name, convert)


for _name in ("bool", "short", "int", "long", "half", "bfloat16", "float", "double"):
    _conversion(_name, NAMES[_name])
_conversion("byte", _C.uint8)
_conversion("char", _C.int8)
_conversion("cfloat", _C.complex64)
_conversion("cdouble", _C.complex128)


@method
def to(self, *args, dtype=None, device=None, copy=False, **ignored):
    """Converted to a type, a device, or the type and device of a tensor. Gradients
    flow back to where this tensor is."""
    number = None
    for argument in args:
        if type(argument) is _C.dtype:
            dtype = argument
        elif isinstance(argument, Tensor):
            dtype, number = argument.dtype, argument._device_number
        elif isinstance(argument, bool) or argument is None:
            continue
        elif isinstance(argument, (str, int, _device)):
            device = argument
        else:
            raise TypeError(
                f"to() takes a dtype, a device or a tensor, not {argument!r}"
            )
    if device is not None:
        number = _C.device_number(device)
    return _convert(self, dtype or self.dtype, number, copy)


@method(names=("type",))
def _type(self, dtype=None, non_blocking=False):
    """The type's name, or this tensor converted."""
    if dtype is None:
        package = repr(self.dtype).partition(".")[0]
        if self._device_number:
            package += ".cuda"
        return f"{package}.{_TYPE_NAMES[self.dtype]}"
    if isinstance(dtype, str):
        package, _, wanted = dtype.rpartition(".")
        for known, name in _TYPE_NAMES.items():
            if name == wanted and package in _TYPE_PACKAGES:
                return _convert(self, known, _number_of(self, package))
        raise ValueError(f"invalid type: '{dtype}'")
    if isinstance(dtype, _C.dtype):
        return _convert(self, dtype)
    return _convert(self, dtype.dtype, _number_of(self, dtype.package))


def _number_of(tensor, package):
    """The device of `package`.FloatTensor: any GPU's for torch.cuda's."""
    if not package.endswith("cuda"):
        return 0
    return tensor._device_number or _C.device_number("cuda")


_TYPE_PACKAGES = ("holdfast", "torch", "torch.cuda", "holdfast.cuda")
_TYPE_NAMES = {
    _C.bool: "BoolTensor",
    _C.uint8: "ByteTensor",
    _C.int8: "CharTensor",
    _C.int16: "ShortTensor",
    _C.int32: "IntTensor",
    _C.int64: "LongTensor",
    _C.float16: "HalfTensor",
    _C.bfloat16: "BFloat16Tensor",
    _C.float32: "FloatTensor",
    _C.float64: "DoubleTensor",
    _C.complex64: "ComplexFloatTensor",
    _C.complex128: "ComplexDoubleTensor",
}


@method
def type_as(self, other):
    """Converted to other's type, on its device."""
    return _convert(self, other.dtype, other._device_number)


@method
def cpu(self, memory_format=None):
    """This tensor, or a copy of one that is on a GPU."""
    return self.to(device="cpu")


@method
def cuda(self, device=None, non_blocking=False):
    """This tensor, or a copy of one that is not on that GPU."""
    return self.to(device="cuda" if device is None else device)


@overload("clone")
def _clone(input, *, memory_format=None, inplace_=False):
    if memory_format in (None, preserve_format):
        return _ops.clone(input)
    lies = input.contiguous(memory_format=memory_format)
    return lies if lies is not input else _ops.clone(input)


@overload("copy")
def _copy(input, src, non_blocking=False, *, inplace_=False):
    if not isinstance(src, Tensor):
        src = _C.as_tensor(src)
    return Tensor.copy_(input, src)


@both
def is_complex(input):
    """True if the type is complex64 or complex128."""
    return input.dtype.is_complex


@function
def is_floating_point(input):
    """True if the type is a floating point type."""
    return input.is_floating_point()


@function
def numel(input):
    """Number of elements."""
    return input.numel()


@function
def is_tensor(obj):
    """True if obj is a holdfast.Tensor."""
    return isinstance(obj, Tensor)


# bool < integers < floating point < complex; within a category the wider one
# wins, except that uint8 meets a signed type of its size in the next wider one.
_ORDER = [
    _C.bool,
    _C.uint8,
    _C.int8,
    _C.int16,
    _C.int32,
    _C.int64,
    _C.float16,
    _C.bfloat16,
    _C.float32,
    _C.float64,
    _C.complex64,
    _C.complex128,
]


@function
def promote_types(type1, type2):
    """The type that holds the values of both."""
    pair = {type1, type2}
    if type1.is_complex or type2.is_complex:
        wide = pair & {_C.float64, _C.complex128}
        return _C.complex128 if wide else _C.complex64
    if pair == {_C.uint8, _C.int8}:
        return _C.int16
    if pair == {_C.float16, _C.bfloat16}:
        return _C.float32
    return max(type1, type2, key=_ORDER.index)


def _category(dtype):
    if dtype is _C.bool:
        return 0
    if dtype.is_complex:
        return 3
    return 2 if dtype.is_floating_point else 1


_NUMBER_TYPES = {
    numbers.Integral: _C.int64,
    numbers.Real: _C.float32,
    numbers.Complex: _C.complex64,
}


def _number_type(number):
    for kind, dtype in _NUMBER_TYPES.items():
        if isinstance(number, kind):
            return dtype
    raise TypeError(
        f"an operand must be a tensor or a number. Got {type(number).__name__}."
    )


@function
def result_type(tensor1, tensor2):
    """The type that an operator on the two gives."""
    groups = {}
    for operand in (tensor1, tensor2):
        if isinstance(operand, Tensor):
            rank, dtype = 0 if operand.dim() else 1, operand.dtype
        elif isinstance(operand, bool):
            rank, dtype = 2, _C.bool
        else:
            rank = 2
            dtype = _number_type(operand)
        known = groups.get(rank)
        groups[rank] = dtype if known is None else promote_types(known, dtype)
    result = None
    for rank in sorted(groups):
        if result is None:
            result = groups[rank]
        elif _category(groups[rank]) > _category(result):
            # A float keeps its precision when it becomes complex.
            lower = groups[rank]
            if result.is_floating_point:
                lower = _C.complex64
            result = promote_types(lower, result)
    return result


@function
def can_cast(from_, to):
    """False where a category would be lost (float to int, int to bool)."""
    return _category(from_) <= _category(to)


@function
def get_default_dtype():
    """What floating point numbers without a type become: float32 unless it was set."""
    return _C.default_dtype()


@function
def set_default_dtype(d):
    """Sets what floating point numbers without a type become, for the whole process;
    TypeError for a type that is not floating point."""
    _C.set_default_dtype(d)


@function
class finfo:
    """Limits of a floating point type; of a complex one's parts."""

    def __init__(self, type=None):
        limits = {
            _C.float32: (32, 2.0**-23, 3.4028234663852886e38, 2.0**-126),
            _C.float64: (64, 2.0**-52, 1.7976931348623157e308, 2.0**-1022),
            _C.float16: (16, 2.0**-10, 65504.0, 2.0**-14),
            _C.bfloat16: (16, 2.0**-7, 3.3895313892515355e38, 2.0**-126),
        }
        parts = {_C.complex64: _C.float32, _C.complex128: _C.float64}
        self.dtype = parts.get(type, type) or _C.default_dtype()
        if self.dtype not in limits:
            raise TypeError(f"finfo() takes a floating point type, not {type}")
        self.bits, self.eps, self.max, self.tiny = limits[self.dtype]
        self.min, self.smallest_normal = -self.max, self.tiny

    def __repr__(self):
        return f"finfo(dtype={self.dtype.name}, eps={self.eps}, max={self.max})"


@function
class iinfo:
    """Limits of an integer type."""

    def __init__(self, type):
        if type.is_floating_point or type.is_complex or type is _C.bool:
            raise TypeError(f"iinfo() takes an integer type, not {type}")
        self.dtype, self.bits = type, 8 * type.itemsize
        self.max = 2 ** (self.bits - type.is_signed) - 1
        self.min = -self.max - 1 if type.is_signed else 0

    def __repr__(self):
        return f"iinfo(dtype={self.dtype.name}, min={self.min}, max={self.max})"
